// Vectors of 16 lanes as four registers of AArch64's NEON, with its dot products of bytes. Names
// and meanings: simd/scalar-inl.h.

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

struct F32 {  // 16 floats
  float32x4_t v0, v1, v2, v3;
};
struct I32 {  // 16 integers; also 64 signed bytes, four a lane
  int32x4_t v0, v1, v2, v3;
};
struct U8 {  // 64 unsigned bytes, four a lane; also 32 words, two a lane
  uint8x16_t v0, v1, v2, v3;
};

/// The four registers of a vector, each made by `make` from the same register of every operand.
template <typename Vector, typename Make, typename... Operands>
inline Vector each(Make make, Operands... operands) {
  return {make(operands.v0...), make(operands.v1...), make(operands.v2...), make(operands.v3...)};
}

// Floats.
inline F32 splat(float x) {
  const float32x4_t four = vdupq_n_f32(x);
  return {four, four, four, four};
}
inline F32 zero_f32() {
  return splat(0.0F);
}
inline F32 load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
inline void store(float* p, F32 x) {
  vst1q_f32(p, x.v0);
  vst1q_f32(p + 4, x.v1);
  vst1q_f32(p + 8, x.v2);
  vst1q_f32(p + 12, x.v3);
}
inline F32 load_first(const float* p, int n) {
  float lanes[16] = {};
  __builtin_memcpy(lanes, p, sizeof(float) * static_cast<size_t>(n));
  return load(lanes);
}
inline void store_first(float* p, F32 x, int n) {
  float lanes[16];
  store(lanes, x);
  __builtin_memcpy(p, lanes, sizeof(float) * static_cast<size_t>(n));
}
inline F32 add(F32 a, F32 b) {
  return each<F32>([](auto x, auto y) { return vaddq_f32(x, y); }, a, b);
}
inline F32 sub(F32 a, F32 b) {
  return each<F32>([](auto x, auto y) { return vsubq_f32(x, y); }, a, b);
}
inline F32 mul(F32 a, F32 b) {
  return each<F32>([](auto x, auto y) { return vmulq_f32(x, y); }, a, b);
}
inline F32 div(F32 a, F32 b) {
  return each<F32>([](auto x, auto y) { return vdivq_f32(x, y); }, a, b);
}
inline F32 fma(F32 a, F32 b, F32 c) {
  return each<F32>([](auto x, auto y, auto z) { return vfmaq_f32(z, x, y); }, a, b, c);
}
// vminq_f32 would give NaN where only a is NaN.
inline F32 minimum(F32 a, F32 b) {
  return each<F32>([](auto x, auto y) { return vbslq_f32(vcltq_f32(x, y), x, y); }, a, b);
}
inline F32 maximum(F32 a, F32 b) {
  return each<F32>([](auto x, auto y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }, a, b);
}
inline F32 absolute(F32 a) {
  return each<F32>([](auto x) { return vabsq_f32(x); }, a);
}
inline float sum(F32 a) {
  const float32x4_t four = vaddq_f32(vaddq_f32(a.v0, a.v2), vaddq_f32(a.v1, a.v3));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline float largest(F32 a) {
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(a.v0, a.v1), vmaxq_f32(a.v2, a.v3)));
}
inline F32 where_less(F32 x, F32 y, F32 a, F32 b) {
  return each<F32>(
      [](auto i, auto j, auto k, auto l) { return vbslq_f32(vcltq_f32(i, j), k, l); }, x, y, a, b
  );
}

// Integers.
inline I32 splat(int32_t x) {
  const int32x4_t four = vdupq_n_s32(x);
  return {four, four, four, four};
}
inline I32 zero_i32() {
  return splat(int32_t{0});
}
inline I32 load(const int32_t* p) {
  return {vld1q_s32(p), vld1q_s32(p + 4), vld1q_s32(p + 8), vld1q_s32(p + 12)};
}
inline void store(int32_t* p, I32 x) {
  vst1q_s32(p, x.v0);
  vst1q_s32(p + 4, x.v1);
  vst1q_s32(p + 8, x.v2);
  vst1q_s32(p + 12, x.v3);
}
inline I32 add(I32 a, I32 b) {
  return each<I32>([](auto x, auto y) { return vaddq_s32(x, y); }, a, b);
}
inline I32 sub(I32 a, I32 b) {
  return each<I32>([](auto x, auto y) { return vsubq_s32(x, y); }, a, b);
}
inline int32_t sum(I32 a) {
  return vaddvq_s32(vaddq_s32(vaddq_s32(a.v0, a.v1), vaddq_s32(a.v2, a.v3)));
}
template <int n>
inline I32 shift_left(I32 a) {
  return each<I32>([](auto x) { return vshlq_n_s32(x, n); }, a);
}
template <int n>
inline I32 shift_right(I32 a) {
  return each<I32>([](auto x) { return vshrq_n_s32(x, n); }, a);
}
inline F32 to_f32(I32 a) {
  return each<F32>([](auto x) { return vcvtq_f32_s32(x); }, a);
}
inline I32 to_i32(F32 a) {
  return each<I32>([](auto x) { return vcvtnq_s32_f32(x); }, a);
}
inline F32 as_f32(I32 a) {
  return each<F32>([](auto x) { return vreinterpretq_f32_s32(x); }, a);
}
inline I32 as_i32(F32 a) {
  return each<I32>([](auto x) { return vreinterpretq_s32_f32(x); }, a);
}
inline void store_bytes(int8_t* p, I32 x) {
  const int16x8_t low = vcombine_s16(vmovn_s32(x.v0), vmovn_s32(x.v1));
  const int16x8_t high = vcombine_s16(vmovn_s32(x.v2), vmovn_s32(x.v3));
  vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
inline I32 load_bytes(const uint8_t* p) {
  const uint8x16_t bytes = vld1q_u8(p);
  const uint16x8_t low = vmovl_u8(vget_low_u8(bytes));
  const uint16x8_t high = vmovl_u8(vget_high_u8(bytes));
  const auto widened = [](uint16x4_t words) { return vreinterpretq_s32_u32(vmovl_u16(words)); };
  return {
      widened(vget_low_u16(low)),
      widened(vget_high_u16(low)),
      widened(vget_low_u16(high)),
      widened(vget_high_u16(high))
  };
}

// Narrow floats.
inline float32x4_t float_of_bf16(uint16x4_t words) {
  return vreinterpretq_f32_u32(vshll_n_u16(words, 16));
}
inline F32 load_bf16(const uint16_t* p) {
  const uint16x8_t low = vld1q_u16(p);
  const uint16x8_t high = vld1q_u16(p + 8);
  return {
      float_of_bf16(vget_low_u16(low)),
      float_of_bf16(vget_high_u16(low)),
      float_of_bf16(vget_low_u16(high)),
      float_of_bf16(vget_high_u16(high))
  };
}
inline uint16x4_t bf16_of_float(float32x4_t x) {
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet), 16);
}
inline void store_bf16(uint16_t* p, F32 x) {
  vst1q_u16(p, vcombine_u16(bf16_of_float(x.v0), bf16_of_float(x.v1)));
  vst1q_u16(p + 8, vcombine_u16(bf16_of_float(x.v2), bf16_of_float(x.v3)));
}
inline F32 load_f16(const uint16_t* p) {
  const float16x8_t low = vreinterpretq_f16_u16(vld1q_u16(p));
  const float16x8_t high = vreinterpretq_f16_u16(vld1q_u16(p + 8));
  return {
      vcvt_f32_f16(vget_low_f16(low)),
      vcvt_high_f32_f16(low),
      vcvt_f32_f16(vget_low_f16(high)),
      vcvt_high_f32_f16(high)
  };
}
inline F32 low_bf16(U8 pairs) {
  return each<F32>(
      [](auto x) { return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_u8(x), 16)); }, pairs
  );
}
inline F32 high_bf16(U8 pairs) {
  return each<F32>(
      [](auto x) {
        return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_u8(x), vdupq_n_u32(0xffff0000)));
      },
      pairs
  );
}

// Bytes.
inline U8 load_u8(const void* p) {
  const auto* bytes = static_cast<const uint8_t*>(p);
  return {vld1q_u8(bytes), vld1q_u8(bytes + 16), vld1q_u8(bytes + 32), vld1q_u8(bytes + 48)};
}
inline void store_u8(void* p, U8 x) {
  auto* bytes = static_cast<uint8_t*>(p);
  vst1q_u8(bytes, x.v0);
  vst1q_u8(bytes + 16, x.v1);
  vst1q_u8(bytes + 32, x.v2);
  vst1q_u8(bytes + 48, x.v3);
}
inline U8 splat_u8(uint8_t x) {
  const uint8x16_t bytes = vdupq_n_u8(x);
  return {bytes, bytes, bytes, bytes};
}
inline U8 bit_and(U8 a, U8 b) {
  return each<U8>([](auto x, auto y) { return vandq_u8(x, y); }, a, b);
}
inline U8 bit_or(U8 a, U8 b) {
  return each<U8>([](auto x, auto y) { return vorrq_u8(x, y); }, a, b);
}
template <int n>
inline U8 shift_words_right(U8 a) {
  return each<U8>(
      [](auto x) { return vreinterpretq_u8_u16(vshrq_n_u16(vreinterpretq_u16_u8(x), n)); }, a
  );
}
template <int n>
inline U8 shift_words_left(U8 a) {
  return each<U8>(
      [](auto x) { return vreinterpretq_u8_u16(vshlq_n_u16(vreinterpretq_u16_u8(x), n)); }, a
  );
}

// Dot products.
inline I32 splat_quad(const int8_t* p) {
  int32_t quad;
  __builtin_memcpy(&quad, p, sizeof(quad));
  return splat(quad);
}
inline I32 dot4(I32 acc, U8 w, I32 x) {
  return each<I32>(
      [](auto a, auto u, auto s) {
        return vdotq_s32(a, vreinterpretq_s8_u8(u), vreinterpretq_s8_s32(s));
      },
      acc,
      w,
      x
  );
}
inline I32 dot4_wide(I32 acc, U8 w, I32 x) {
  return each<I32>(
      [](auto a, auto u, auto s) {
        const int8x16_t signed_x = vreinterpretq_s8_s32(s);
        // w * x = (w - 128) * x - (-128 * x); w - 128 has w's bits but for the highest.
        const int8x16_t lowered = vreinterpretq_s8_u8(veorq_u8(u, vdupq_n_u8(0x80)));
        const int32x4_t excess = vdotq_s32(vdupq_n_s32(0), signed_x, vdupq_n_s8(-128));
        return vsubq_s32(vdotq_s32(a, lowered, signed_x), excess);
      },
      acc,
      w,
      x
  );
}
/// Both with the same four bytes of x in every lane.
inline I32 dot4_at(I32 acc, U8 w, const int8_t* x) {
  return dot4(acc, w, splat_quad(x));
}
inline I32 dot4_wide_at(I32 acc, U8 w, const int8_t* x) {
  return dot4_wide(acc, w, splat_quad(x));
}

__attribute__((always_inline)) inline void prefetch(const void* p) {
  __builtin_prefetch(p);
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
