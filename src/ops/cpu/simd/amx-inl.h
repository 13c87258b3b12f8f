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

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
