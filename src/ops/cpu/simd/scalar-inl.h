// Vectors of 16 lanes as arrays and loops, for any CPU: what the functions of this folder mean.
// Every other file in it gives the same bits, but for NaNs, of which only that they are NaN is the
// same.

#include <cstddef>
#include <cstdint>

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

// Kernels unroll: inlined a thousand times, loops would keep a compiler busy for minutes.
#define WHIMBREL_LOOP __attribute__((noinline)) inline

struct F32 {  // 16 floats
  float v[16];
};
struct I32 {  // 16 integers; also 64 signed bytes, four a lane
  int32_t v[16];
};
struct U8 {  // 64 unsigned bytes, four a lane; also 32 words, two a lane
  uint8_t v[64];
};

template <typename Vector, typename Lane>
inline Vector from_lanes(Lane lane) {
  Vector made;
  for (int i = 0; i < 16; ++i) {
    made.v[i] = lane(i);
  }
  return made;
}

// Floats.
WHIMBREL_LOOP F32 splat(float x) {
  return from_lanes<F32>([&](int) { return x; });
}
WHIMBREL_LOOP F32 zero_f32() {
  return splat(0.0F);
}
WHIMBREL_LOOP F32 load(const float* p) {
  return from_lanes<F32>([&](int i) { return p[i]; });
}
WHIMBREL_LOOP void store(float* p, const F32& x) {
  __builtin_memcpy(p, x.v, sizeof(x.v));
}
/// The first n lanes, zeros behind them; 0 <= n <= 16.
WHIMBREL_LOOP F32 load_first(const float* p, int n) {
  return from_lanes<F32>([&](int i) { return i < n ? p[i] : 0.0F; });
}
WHIMBREL_LOOP void store_first(float* p, const F32& x, int n) {
  for (int i = 0; i < n; ++i) {
    p[i] = x.v[i];
  }
}
WHIMBREL_LOOP F32 add(const F32& a, const F32& b) {
  return from_lanes<F32>([&](int i) { return a.v[i] + b.v[i]; });
}
WHIMBREL_LOOP F32 sub(const F32& a, const F32& b) {
  return from_lanes<F32>([&](int i) { return a.v[i] - b.v[i]; });
}
WHIMBREL_LOOP F32 mul(const F32& a, const F32& b) {
  return from_lanes<F32>([&](int i) { return a.v[i] * b.v[i]; });
}
WHIMBREL_LOOP F32 div(const F32& a, const F32& b) {
  return from_lanes<F32>([&](int i) { return a.v[i] / b.v[i]; });
}
inline float fma_of_lane(float a, float b, float c) {
#if defined(__FP_FAST_FMAF)
  return __builtin_fmaf(a, b, c);
#else
  // The product is exact in double. The sum is rounded to odd there (S. Boldo, G. Melquiond,
  // "Emulation of a FMA and correctly rounded sums", 2008), so that rounding it to float is the
  // only rounding that counts.
  const double product = static_cast<double>(a) * b;
  const double sum = product + c;
  const double added = sum - product;
  const double error = (product - (sum - added)) + (c - added);
  int64_t bits = __builtin_bit_cast(int64_t, sum);
  const int64_t outwards = (error > 0) == (sum > 0) ? 1 : -1;
  bits += (error > 0 || error < 0) && bits % 2 == 0 ? outwards : 0;
  return static_cast<float>(__builtin_bit_cast(double, bits));
#endif
}
/// a * b + c, rounded once.
WHIMBREL_LOOP F32 fma(const F32& a, const F32& b, const F32& c) {
  return from_lanes<F32>([&](int i) { return fma_of_lane(a.v[i], b.v[i], c.v[i]); });
}
/// b where either is NaN, and of two zeros.
WHIMBREL_LOOP F32 minimum(const F32& a, const F32& b) {
  return from_lanes<F32>([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
WHIMBREL_LOOP F32 maximum(const F32& a, const F32& b) {
  return from_lanes<F32>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
WHIMBREL_LOOP F32 absolute(const F32& a) {
  return from_lanes<F32>([&](int i) { return __builtin_fabsf(a.v[i]); });
}
/// Of all lanes: the upper half is added to the lower one until one number is left.
WHIMBREL_LOOP float sum(const F32& x) {
  F32 a = x;
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      a.v[i] += a.v[i + half];
    }
  }
  return a.v[0];
}
/// Of all lanes, none of them NaN.
WHIMBREL_LOOP float largest(const F32& a) {
  float found = a.v[0];
  for (const float lane : a.v) {
    found = lane > found ? lane : found;
  }
  return found;
}
/// Lane by lane a where x < y, else b.
WHIMBREL_LOOP F32 where_less(const F32& x, const F32& y, const F32& a, const F32& b) {
  return from_lanes<F32>([&](int i) { return x.v[i] < y.v[i] ? a.v[i] : b.v[i]; });
}

// Integers; sums and shifts wrap around.
WHIMBREL_LOOP I32 splat(int32_t x) {
  return from_lanes<I32>([&](int) { return x; });
}
WHIMBREL_LOOP I32 zero_i32() {
  return splat(int32_t{0});
}
WHIMBREL_LOOP I32 load(const int32_t* p) {
  return from_lanes<I32>([&](int i) { return p[i]; });
}
WHIMBREL_LOOP void store(int32_t* p, const I32& x) {
  __builtin_memcpy(p, x.v, sizeof(x.v));
}
inline int32_t wrapping_sum(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
WHIMBREL_LOOP I32 add(const I32& a, const I32& b) {
  return from_lanes<I32>([&](int i) { return wrapping_sum(a.v[i], b.v[i]); });
}
WHIMBREL_LOOP I32 sub(const I32& a, const I32& b) {
  return from_lanes<I32>([&](int i) {
    return static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) - static_cast<uint32_t>(b.v[i]));
  });
}
/// Of all lanes.
WHIMBREL_LOOP int32_t sum(const I32& a) {
  int32_t total = 0;
  for (const int32_t lane : a.v) {
    total = wrapping_sum(total, lane);
  }
  return total;
}
template <int n>
WHIMBREL_LOOP I32 shift_left(const I32& a) {
  return from_lanes<I32>([&](int i) {
    return static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) << n);
  });
}
/// Keeps the sign.
template <int n>
WHIMBREL_LOOP I32 shift_right(const I32& a) {
  return from_lanes<I32>([&](int i) { return a.v[i] >> n; });
}
WHIMBREL_LOOP F32 to_f32(const I32& a) {
  return from_lanes<F32>([&](int i) { return static_cast<float>(a.v[i]); });
}
/// To the nearest, ties to even. Any integer where the lane is NaN or none is near.
WHIMBREL_LOOP I32 to_i32(const F32& a) {
  constexpr float kAllAreIntegers = 8388608.0F;  // 2^23: from here on, and so is a sum with it
  return from_lanes<I32>([&](int i) {
    const float size = __builtin_fabsf(a.v[i]);
    const float whole = size < kAllAreIntegers ? (size + kAllAreIntegers) - kAllAreIntegers : size;
    const float rounded = __builtin_copysignf(whole, a.v[i]);
    const bool fits = rounded >= -2147483648.0F && rounded < 2147483648.0F;
    return fits ? static_cast<int32_t>(rounded) : INT32_MIN;
  });
}
/// The same bits.
WHIMBREL_LOOP F32 as_f32(const I32& a) {
  return __builtin_bit_cast(F32, a);
}
WHIMBREL_LOOP I32 as_i32(const F32& a) {
  return __builtin_bit_cast(I32, a);
}
/// The low byte of each lane.
WHIMBREL_LOOP void store_bytes(int8_t* p, const I32& x) {
  for (int i = 0; i < 16; ++i) {
    p[i] = static_cast<int8_t>(x.v[i]);
  }
}
/// 16 bytes without sign, one a lane.
WHIMBREL_LOOP I32 load_bytes(const uint8_t* p) {
  return from_lanes<I32>([&](int i) { return int32_t{p[i]}; });
}

// Narrow floats.
inline float float_of_bits(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
WHIMBREL_LOOP F32 load_bf16(const uint16_t* p) {
  return from_lanes<F32>([&](int i) { return float_of_bits(uint32_t{p[i]} << 16); });
}
inline uint16_t bf16_of_lane(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t odd = (bits >> 16) & 1;
  const uint32_t made = __builtin_isnan(x) ? bits | 0x400000 : bits + 0x7fff + odd;
  return static_cast<uint16_t>(made >> 16);
}
/// To the nearest, ties to even; NaN stays NaN.
WHIMBREL_LOOP void store_bf16(uint16_t* p, const F32& x) {
  for (int i = 0; i < 16; ++i) {
    p[i] = bf16_of_lane(x.v[i]);
  }
}
inline float float_of_f16(uint16_t half) {
  const uint32_t sign = (half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 31U;
  const uint32_t fraction = half & 0x3ffU;
  if (exponent == 31) {
    return float_of_bits(sign | 0x7f800000 | (fraction << 13) | (fraction != 0 ? 0x400000 : 0));
  }
  // A number below 2^-14 has no leading one: its fraction counts units of 2^-24.
  const float size = exponent == 0 ? static_cast<float>(fraction) * 0x1p-24F
                                   : float_of_bits(((exponent + 112) << 23) | (fraction << 13));
  return sign != 0 ? -size : size;
}
WHIMBREL_LOOP F32 load_f16(const uint16_t* p) {
  return from_lanes<F32>([&](int i) { return float_of_f16(p[i]); });
}
/// Of 32 words, two a lane: the low word, the high word as bfloat16.
WHIMBREL_LOOP F32 low_bf16(const U8& pairs) {
  return as_f32(shift_left<16>(__builtin_bit_cast(I32, pairs)));
}
WHIMBREL_LOOP F32 high_bf16(const U8& pairs) {
  const I32 lanes = __builtin_bit_cast(I32, pairs);
  return from_lanes<F32>([&](int i) {
    return float_of_bits(static_cast<uint32_t>(lanes.v[i]) & 0xffff0000U);
  });
}

// Bytes.
template <typename Byte>
inline U8 from_bytes(Byte byte) {
  U8 made;
  for (int i = 0; i < 64; ++i) {
    made.v[i] = static_cast<uint8_t>(byte(i));
  }
  return made;
}
WHIMBREL_LOOP U8 load_u8(const void* p) {
  U8 loaded;
  __builtin_memcpy(loaded.v, p, sizeof(loaded.v));
  return loaded;
}
WHIMBREL_LOOP void store_u8(void* p, const U8& x) {
  __builtin_memcpy(p, x.v, sizeof(x.v));
}
WHIMBREL_LOOP U8 splat_u8(uint8_t x) {
  return from_bytes([&](int) { return x; });
}
WHIMBREL_LOOP U8 bit_and(const U8& a, const U8& b) {
  return from_bytes([&](int i) { return a.v[i] & b.v[i]; });
}
WHIMBREL_LOOP U8 bit_or(const U8& a, const U8& b) {
  return from_bytes([&](int i) { return a.v[i] | b.v[i]; });
}
struct Words {
  uint16_t v[32];
};
/// Bits cross the border between the two bytes of a word: mask them.
template <int n>
WHIMBREL_LOOP U8 shift_words_right(const U8& a) {
  Words words = __builtin_bit_cast(Words, a);
  for (uint16_t& word : words.v) {
    word = static_cast<uint16_t>(word >> n);
  }
  return __builtin_bit_cast(U8, words);
}
template <int n>
WHIMBREL_LOOP U8 shift_words_left(const U8& a) {
  Words words = __builtin_bit_cast(Words, a);
  for (uint16_t& word : words.v) {
    word = static_cast<uint16_t>(word << n);
  }
  return __builtin_bit_cast(U8, words);
}

// Dot products.
/// Four signed bytes in every lane.
WHIMBREL_LOOP I32 splat_quad(const int8_t* p) {
  int32_t quad;
  __builtin_memcpy(&quad, p, sizeof(quad));
  return splat(quad);
}
struct S8 {
  int8_t v[64];
};
/// acc + the sum over a lane's four bytes of w * x, x signed, for any w.
WHIMBREL_LOOP I32 dot4_wide(const I32& acc, const U8& w, const I32& x) {
  const S8 bytes = __builtin_bit_cast(S8, x);
  return from_lanes<I32>([&](int i) {
    int32_t products = 0;
    for (int j = 4 * i; j < 4 * i + 4; ++j) {
      products += w.v[j] * bytes.v[j];
    }
    return wrapping_sum(acc.v[i], products);
  });
}
/// The same for w below 128, which may be faster.
WHIMBREL_LOOP I32 dot4(const I32& acc, const U8& w, const I32& x) {
  return dot4_wide(acc, w, x);
}
/// Both with the same four bytes of x in every lane.
WHIMBREL_LOOP I32 dot4_at(I32 acc, U8 w, const int8_t* x) {
  return dot4(acc, w, splat_quad(x));
}
WHIMBREL_LOOP I32 dot4_wide_at(I32 acc, U8 w, const int8_t* x) {
  return dot4_wide(acc, w, splat_quad(x));
}

__attribute__((always_inline)) inline void prefetch(const void* p) {
  __builtin_prefetch(p);
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
