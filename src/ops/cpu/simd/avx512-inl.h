// Vectors of 16 lanes on AVX-512 (F, BW, DQ, VL, VNNI), and with its dot products of bfloat16 where
// the unit is compiled for them. The same names and meanings stand in every file of this folder;
// kernels are written once on them. No include guard of the usual kind: a translation unit of one
// instruction set includes exactly one of these, in its own namespace.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

struct F32 {  // 16 floats
  __m512 v;
};
struct I32 {  // 16 integers; also 64 signed bytes, four a lane
  __m512i v;
};
struct U8 {  // 64 unsigned bytes, four a lane; also 32 words, two a lane
  __m512i v;
};

// Floats.
inline F32 zero_f32() {
  return {_mm512_setzero_ps()};
}
inline F32 splat(float x) {
  return {_mm512_set1_ps(x)};
}
inline F32 load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
inline void store(float* p, F32 x) {
  _mm512_storeu_ps(p, x.v);
}
/// The first n lanes, zeros behind them; 0 <= n <= 16.
inline F32 load_first(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << n) - 1), p)};
}
inline void store_first(float* p, F32 x, int n) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1U << n) - 1), x.v);
}
inline F32 add(F32 a, F32 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
inline F32 sub(F32 a, F32 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
inline F32 mul(F32 a, F32 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
inline F32 div(F32 a, F32 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
/// a * b + c, rounded once where the instruction set can.
inline F32 fma(F32 a, F32 b, F32 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline F32 minimum(F32 a, F32 b) {
  return {_mm512_min_ps(a.v, b.v)};
}
inline F32 maximum(F32 a, F32 b) {
  return {_mm512_max_ps(a.v, b.v)};
}
inline F32 absolute(F32 a) {
  return {_mm512_abs_ps(a.v)};
}
/// Of all lanes.
inline float sum(F32 a) {
  return _mm512_reduce_add_ps(a.v);
}
inline float largest(F32 a) {
  return _mm512_reduce_max_ps(a.v);
}
/// Lane by lane a where x < y, else b.
inline F32 where_less(F32 x, F32 y, F32 a, F32 b) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, y.v, _CMP_LT_OQ), b.v, a.v)};
}

// Integers.
inline I32 zero_i32() {
  return {_mm512_setzero_si512()};
}
inline I32 splat(int32_t x) {
  return {_mm512_set1_epi32(x)};
}
inline I32 load(const int32_t* p) {
  return {_mm512_loadu_si512(p)};
}
inline void store(int32_t* p, I32 x) {
  _mm512_storeu_si512(p, x.v);
}
inline I32 add(I32 a, I32 b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
inline I32 sub(I32 a, I32 b) {
  return {_mm512_sub_epi32(a.v, b.v)};
}
inline int32_t sum(I32 a) {
  return _mm512_reduce_add_epi32(a.v);
}
template <int n>
inline I32 shift_left(I32 a) {
  return {_mm512_slli_epi32(a.v, n)};
}
/// Keeps the sign.
template <int n>
inline I32 shift_right(I32 a) {
  return {_mm512_srai_epi32(a.v, n)};
}
inline F32 to_f32(I32 a) {
  return {_mm512_cvtepi32_ps(a.v)};
}
/// To the nearest, ties to even.
inline I32 to_i32(F32 a) {
  return {_mm512_cvtps_epi32(a.v)};
}
/// The same bits.
inline F32 as_f32(I32 a) {
  return {_mm512_castsi512_ps(a.v)};
}
inline I32 as_i32(F32 a) {
  return {_mm512_castps_si512(a.v)};
}
/// The low byte of each lane.
inline void store_bytes(int8_t* p, I32 x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x.v));
}
/// 16 bytes without sign, one a lane.
inline I32 load_bytes(const uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}

// Narrow floats.
inline F32 load_bf16(const uint16_t* p) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16))};
}
/// To the nearest, ties to even; NaN stays NaN.
inline void store_bf16(uint16_t* p, F32 x) {
  const __m512i bits = _mm512_castps_si512(x.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q);
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __m512i words = _mm512_srli_epi32(_mm512_mask_blend_epi32(nan, rounded, quiet), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(words));
}
inline F32 load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
/// Of 32 words, two a lane: the low word, the high word as bfloat16.
inline F32 low_bf16(U8 pairs) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(pairs.v, 16))};
}
inline F32 high_bf16(U8 pairs) {
  return {_mm512_castsi512_ps(_mm512_and_si512(pairs.v, _mm512_set1_epi32(-65536)))};
}

// Bytes.
inline U8 load_u8(const void* p) {
  return {_mm512_loadu_si512(p)};
}
inline void store_u8(void* p, U8 x) {
  _mm512_storeu_si512(p, x.v);
}
inline U8 splat_u8(uint8_t x) {
  return {_mm512_set1_epi8(static_cast<char>(x))};
}
inline U8 bit_and(U8 a, U8 b) {
  return {_mm512_and_si512(a.v, b.v)};
}
inline U8 bit_or(U8 a, U8 b) {
  return {_mm512_or_si512(a.v, b.v)};
}
/// Bits cross the border between the two bytes of a word: mask them.
template <int n>
inline U8 shift_words_right(U8 a) {
  return {_mm512_srli_epi16(a.v, n)};
}
template <int n>
inline U8 shift_words_left(U8 a) {
  return {_mm512_slli_epi16(a.v, n)};
}

// Dot products.
/// Four signed bytes in every lane.
inline I32 splat_quad(const int8_t* p) {
  int32_t quad;
  __builtin_memcpy(&quad, p, sizeof(quad));
  return {_mm512_set1_epi32(quad)};
}
/// acc + the sum over a lane's four bytes of w * x, x signed. w below 128.
inline I32 dot4(I32 acc, U8 w, I32 x) {
  return {_mm512_dpbusd_epi32(acc.v, w.v, x.v)};
}
/// The same for any w.
inline I32 dot4_wide(I32 acc, U8 w, I32 x) {
  return {_mm512_dpbusd_epi32(acc.v, w.v, x.v)};
}
/// Both with the same four bytes of x in every lane. In assembly, for gcc loads the bytes on their
/// own where the instruction can.
inline I32 dot4_at(I32 acc, U8 w, const int8_t* x) {
  struct [[gnu::may_alias]] Quad {
    int8_t bytes[4];
  };
  __asm__("vpdpbusd %2%{1to16%}, %1, %0"
          : "+v"(acc.v)
          : "v"(w.v), "m"(*reinterpret_cast<const Quad*>(x)));
  return acc;
}
inline I32 dot4_wide_at(I32 acc, U8 w, const int8_t* x) {
  return dot4_at(acc, w, x);
}
#if defined(__AVX512BF16__)
/// Two bfloat16 in every lane.
inline U8 splat_pair(const uint16_t* p) {
  int32_t pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  return {_mm512_set1_epi32(pair)};
}
/// acc + the sum over a lane's two bfloat16 of w * x. Numbers below 2^-126 count as zero, and the
/// sum is rounded twice: not the bits of two fma.
inline F32 dot2_bf16(F32 acc, U8 w, U8 x) {
  // clang 16 dies over the intrinsic's vectors of bfloat16 where it adds sanitizers.
  __asm__("vdpbf16ps %2, %1, %0" : "+v"(acc.v) : "v"(w.v), "v"(x.v));
  return acc;
}
#endif

#define WHIMBREL_SIMD_ACROSS
// Across the lanes of 16 vectors.
/// Lane i is the sum of all lanes of x[i].
inline F32 sums_of(const F32* x) {
  __m512 pairs[8];
  for (int i = 0; i < 8; ++i) {
    const __m512 a = x[2 * i].v;
    const __m512 b = x[2 * i + 1].v;
    pairs[i] = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  }
  __m512 fours[4];
  for (int i = 0; i < 4; ++i) {
    const __m512d a = _mm512_castps_pd(pairs[2 * i]);
    const __m512d b = _mm512_castps_pd(pairs[2 * i + 1]);
    fours[i] = _mm512_add_ps(
        _mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b))
    );
  }
  const auto add_quarters = [](__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  };
  return {add_quarters(add_quarters(fours[0], fours[1]), add_quarters(fours[2], fours[3]))};
}
/// Lane j of x[i] changes places with lane i of x[j].
inline void transpose(F32* x) {
  __m512 t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(x[i].v, x[i + 1].v);
    t[i + 1] = _mm512_unpackhi_ps(x[i].v, x[i + 1].v);
  }
  __m512 u[16];  // u[4 q + c]: lanes 4 l + c of rows 4 q to 4 q + 3, l the quarter
  for (int q = 0; q < 16; q += 4) {
    for (int half = 0; half < 2; ++half) {
      const __m512d a = _mm512_castps_pd(t[q + half]);
      const __m512d b = _mm512_castps_pd(t[q + 2 + half]);
      u[q + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
      u[q + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
  }
  for (int c = 0; c < 4; ++c) {
    const __m512 low01 = _mm512_shuffle_f32x4(u[c], u[4 + c], 0x44);
    const __m512 low23 = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0x44);
    const __m512 high01 = _mm512_shuffle_f32x4(u[c], u[4 + c], 0xee);
    const __m512 high23 = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0xee);
    x[c] = {_mm512_shuffle_f32x4(low01, low23, 0x88)};
    x[4 + c] = {_mm512_shuffle_f32x4(low01, low23, 0xdd)};
    x[8 + c] = {_mm512_shuffle_f32x4(high01, high23, 0x88)};
    x[12 + c] = {_mm512_shuffle_f32x4(high01, high23, 0xdd)};
  }
}

// gcc takes a function that only prefetches for one without effect and drops its calls.
__attribute__((always_inline)) inline void prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
