// Vectors of 16 lanes as two registers of AVX2 (with FMA and F16C), and with AVX-VNNI's dot
// products where the unit is compiled for them. Names and meanings: simd/scalar-inl.h.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

struct F32 {  // 16 floats
  __m256 low;
  __m256 high;
};
struct I32 {  // 16 integers; also 64 signed bytes, four a lane
  __m256i low;
  __m256i high;
};
struct U8 {  // 64 unsigned bytes, four a lane; also 32 words, two a lane
  __m256i low;
  __m256i high;
};

inline __m256i load_256(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
inline __m128i load_128(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
inline void store_256(void* p, __m256i x) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), x);
}

// Floats.
inline F32 zero_f32() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
inline F32 splat(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
inline F32 load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
inline void store(float* p, F32 x) {
  _mm256_storeu_ps(p, x.low);
  _mm256_storeu_ps(p + 8, x.high);
}
/// Ones in the lanes below n.
inline __m256i mask_first(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline F32 load_first(const float* p, int n) {
  return {_mm256_maskload_ps(p, mask_first(n)), _mm256_maskload_ps(p + 8, mask_first(n - 8))};
}
inline void store_first(float* p, F32 x, int n) {
  _mm256_maskstore_ps(p, mask_first(n), x.low);
  _mm256_maskstore_ps(p + 8, mask_first(n - 8), x.high);
}
inline F32 add(F32 a, F32 b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
inline F32 sub(F32 a, F32 b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
inline F32 mul(F32 a, F32 b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
inline F32 div(F32 a, F32 b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
inline F32 fma(F32 a, F32 b, F32 c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
inline F32 minimum(F32 a, F32 b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
inline F32 maximum(F32 a, F32 b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
inline F32 absolute(F32 a) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
}
inline float sum(F32 a) {
  const __m256 eight = _mm256_add_ps(a.low, a.high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float largest(F32 a) {
  const __m256 eight = _mm256_max_ps(a.low, a.high);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
inline __m256 where_less(__m256 x, __m256 y, __m256 a, __m256 b) {
  return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, y, _CMP_LT_OQ));
}
inline F32 where_less(F32 x, F32 y, F32 a, F32 b) {
  return {where_less(x.low, y.low, a.low, b.low), where_less(x.high, y.high, a.high, b.high)};
}

// Integers.
inline I32 zero_i32() {
  return {_mm256_setzero_si256(), _mm256_setzero_si256()};
}
inline I32 splat(int32_t x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
inline I32 load(const int32_t* p) {
  return {load_256(p), load_256(p + 8)};
}
inline void store(int32_t* p, I32 x) {
  store_256(p, x.low);
  store_256(p + 8, x.high);
}
inline I32 add(I32 a, I32 b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
inline I32 sub(I32 a, I32 b) {
  return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}
inline int32_t sum(I32 a) {
  const __m256i eight = _mm256_add_epi32(a.low, a.high);
  const __m128i four =
      _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}
template <int n>
inline I32 shift_left(I32 a) {
  return {_mm256_slli_epi32(a.low, n), _mm256_slli_epi32(a.high, n)};
}
template <int n>
inline I32 shift_right(I32 a) {
  return {_mm256_srai_epi32(a.low, n), _mm256_srai_epi32(a.high, n)};
}
inline F32 to_f32(I32 a) {
  return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)};
}
inline I32 to_i32(F32 a) {
  return {_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high)};
}
inline F32 as_f32(I32 a) {
  return {_mm256_castsi256_ps(a.low), _mm256_castsi256_ps(a.high)};
}
inline I32 as_i32(F32 a) {
  return {_mm256_castps_si256(a.low), _mm256_castps_si256(a.high)};
}
/// 16 words from the low words of two vectors whose high words are zero.
inline __m256i words_of(__m256i low, __m256i high) {
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), _MM_SHUFFLE(3, 1, 2, 0));
}
inline void store_bytes(int8_t* p, I32 x) {
  const __m256i byte = _mm256_set1_epi32(0xff);
  const __m256i words = words_of(_mm256_and_si256(x.low, byte), _mm256_and_si256(x.high, byte));
  const __m128i bytes =
      _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}
inline I32 load_bytes(const uint8_t* p) {
  const __m128i bytes = load_128(p);
  return {_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
}

// Narrow floats.
inline __m256 float_of_bf16(__m128i words) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
}
inline F32 load_bf16(const uint16_t* p) {
  return {float_of_bf16(load_128(p)), float_of_bf16(load_128(p + 8))};
}
inline __m256i bf16_of_float(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
}
inline void store_bf16(uint16_t* p, F32 x) {
  store_256(p, words_of(bf16_of_float(x.low), bf16_of_float(x.high)));
}
inline F32 load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(load_128(p)), _mm256_cvtph_ps(load_128(p + 8))};
}
inline F32 low_bf16(U8 pairs) {
  return as_f32(shift_left<16>(I32{pairs.low, pairs.high}));
}
inline F32 high_bf16(U8 pairs) {
  const __m256i word = _mm256_set1_epi32(-65536);
  return as_f32({_mm256_and_si256(pairs.low, word), _mm256_and_si256(pairs.high, word)});
}

// Bytes.
inline U8 load_u8(const void* p) {
  return {load_256(p), load_256(static_cast<const uint8_t*>(p) + 32)};
}
inline void store_u8(void* p, U8 x) {
  store_256(p, x.low);
  store_256(static_cast<uint8_t*>(p) + 32, x.high);
}
inline U8 splat_u8(uint8_t x) {
  const __m256i bytes = _mm256_set1_epi8(static_cast<char>(x));
  return {bytes, bytes};
}
inline U8 bit_and(U8 a, U8 b) {
  return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
}
inline U8 bit_or(U8 a, U8 b) {
  return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}
template <int n>
inline U8 shift_words_right(U8 a) {
  return {_mm256_srli_epi16(a.low, n), _mm256_srli_epi16(a.high, n)};
}
template <int n>
inline U8 shift_words_left(U8 a) {
  return {_mm256_slli_epi16(a.low, n), _mm256_slli_epi16(a.high, n)};
}

// Dot products.
inline I32 splat_quad(const int8_t* p) {
  int32_t quad;
  __builtin_memcpy(&quad, p, sizeof(quad));
  return splat(quad);
}
#if defined(__AVXVNNI__)
inline I32 dot4_wide(I32 acc, U8 w, I32 x) {
  return {
      _mm256_dpbusd_avx_epi32(acc.low, w.low, x.low),
      _mm256_dpbusd_avx_epi32(acc.high, w.high, x.high)
  };
}
inline I32 dot4(I32 acc, U8 w, I32 x) {
  return dot4_wide(acc, w, x);
}
#else
inline __m256i dot4(__m256i acc, __m256i w, __m256i x) {
  const __m256i pairs = _mm256_maddubs_epi16(w, x);  // at most 2 * 127 * 128: none saturates
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
inline I32 dot4(I32 acc, U8 w, I32 x) {
  return {dot4(acc.low, w.low, x.low), dot4(acc.high, w.high, x.high)};
}
inline __m256i dot4_wide(__m256i acc, __m256i w, __m256i x) {
  const __m256i w_even = _mm256_and_si256(w, _mm256_set1_epi16(0xff));
  const __m256i x_even = _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
  const __m256i even = _mm256_madd_epi16(w_even, x_even);
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(w, 8), _mm256_srai_epi16(x, 8));
  return _mm256_add_epi32(_mm256_add_epi32(acc, even), odd);
}
inline I32 dot4_wide(I32 acc, U8 w, I32 x) {
  return {dot4_wide(acc.low, w.low, x.low), dot4_wide(acc.high, w.high, x.high)};
}
#endif
/// Both with the same four bytes of x in every lane.
inline I32 dot4_at(I32 acc, U8 w, const int8_t* x) {
  return dot4(acc, w, splat_quad(x));
}
inline I32 dot4_wide_at(I32 acc, U8 w, const int8_t* x) {
  return dot4_wide(acc, w, splat_quad(x));
}

__attribute__((always_inline)) inline void prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
