// AMX tiles, beside the vectors of avx512-inl.h. A tile is up to 16 rows of 64 bytes.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

/// Shapes of the eight tiles, as the instruction reads them.
struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

/// Tiles with these shapes for as long as it lives. Afterwards the core is free of them: no tile
/// state to save at a context switch, and none that keeps its clock low.
class Tiles {
 public:
  explicit Tiles(const TileShapes& shapes) { _tile_loadconfig(&shapes); }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// The compilers' own names take literal numbers only.
template <int tile>
WHIMBREL_INLINE void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(tile));
}
template <int tile>
WHIMBREL_INLINE void tile_load(const void* p, size_t row_stride) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(tile), "r"(p), "r"(row_stride) : "memory");
}
template <int tile>
WHIMBREL_INLINE void tile_store(void* p, size_t row_stride) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(tile), "r"(p), "r"(row_stride) : "memory");
}
/// sum += a b: signed bytes times unsigned bytes, summed as int32.
template <int sum, int a, int b>
WHIMBREL_INLINE void tile_dot_bytes() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sum), "i"(a), "i"(b));
}
/// sum += a b: bfloat16, summed as float32.
template <int sum, int a, int b>
WHIMBREL_INLINE void tile_dot_bf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sum), "i"(a), "i"(b));
}

/// 256 a. A shuffle, for shifts would stand in the way of float arithmetic.
WHIMBREL_INLINE I32 times_256(I32 a) {
  const __m512i places = _mm512_set4_epi32(0x0e0d0cff, 0x0a0908ff, 0x060504ff, 0x020100ff);
  return {_mm512_shuffle_epi8(a.v, places)};
}

/// Integers below 256, two words a lane, as bfloat16: all of them are exact in it.
template <int bits>
WHIMBREL_INLINE __m512i words_to_bf16(__m512i words) {
  if constexpr (bits <= 5) {
    struct alignas(64) Table {
      uint16_t numbers[32] = {};
      constexpr Table() {
        for (int i = 0; i < 32; ++i) {
          const auto number = static_cast<float>(i);
          numbers[i] = static_cast<uint16_t>(__builtin_bit_cast(uint32_t, number) >> 16);
        }
      }
    };
    static constexpr Table kTable;
    return _mm512_permutexvar_epi16(words, _mm512_load_si512(kTable.numbers));
  } else {
    const __m512 low = _mm512_cvtepi32_ps(_mm512_and_si512(words, _mm512_set1_epi32(0xffff)));
    const __m512 high = _mm512_cvtepi32_ps(_mm512_srli_epi32(words, 16));
    return _mm512_or_si512(
        _mm512_srli_epi32(_mm512_castps_si512(low), 16), _mm512_castps_si512(high)
    );
  }
}

/// Codes as bfloat16: of each lane's four bytes the first two -> y [16][2], the other two behind.
template <int bits>
WHIMBREL_INLINE void store_codes_as_bf16(uint16_t* y, U8 codes) {
  const __m512i first = _mm512_set4_epi32(-0xf200f4, -0xf600f8, -0xfa00fc, -0xfe0100);
  const __m512i second = _mm512_set4_epi32(-0xf000f2, -0xf400f6, -0xf800fa, -0xfc00fe);
  _mm512_storeu_si512(y, words_to_bf16<bits>(_mm512_shuffle_epi8(codes.v, first)));
  _mm512_storeu_si512(y + 32, words_to_bf16<bits>(_mm512_shuffle_epi8(codes.v, second)));
}

/// Each lane's number in bfloat16, twice.
WHIMBREL_INLINE U8 bf16_twice(F32 x) {
  const auto words = __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(x.v));
  const __m512i low = _mm512_cvtepu16_epi32(words);
  return {_mm512_or_si512(low, _mm512_slli_epi32(low, 16))};
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
