// Functions of one variable, lane by lane.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

/// e^x to 2e-7 of its value; 0 below -87.3, where floats end. NaN stays NaN.
inline F32 exp(F32 x) {
  constexpr float kLargest = 88.37F;
  constexpr float kSmallest = -87.3F;
  const F32 clamped = minimum(splat(kLargest), maximum(splat(kSmallest), x));
  const I32 n = to_i32(mul(clamped, splat(1.44269504F)));
  const F32 whole = to_f32(n);
  // ln 2 in two parts, the first short enough that its product with n is exact.
  F32 r = fma(whole, splat(-0.693359375F), clamped);
  r = fma(whole, splat(2.12194440e-4F), r);
  // Taylor's series: |r| is at most 0.35, where the next term is 5e-9.
  F32 p = splat(1.0F / 5040);
  p = fma(p, r, splat(1.0F / 720));
  p = fma(p, r, splat(1.0F / 120));
  p = fma(p, r, splat(1.0F / 24));
  p = fma(p, r, splat(1.0F / 6));
  p = fma(p, r, splat(0.5F));
  p = fma(p, r, splat(1.0F));
  p = fma(p, r, splat(1.0F));
  const F32 power = as_f32(shift_left<23>(add(n, splat(int32_t{127}))));
  const F32 y = where_less(x, splat(kSmallest), zero_f32(), mul(p, power));
  return add(y, mul(x, zero_f32()));  // a NaN or an infinity of x must not get lost
}

inline F32 sigmoid(F32 x) {
  const F32 one = splat(1.0F);
  return div(one, add(one, exp(sub(zero_f32(), x))));
}

inline F32 silu(F32 x) {
  return mul(x, sigmoid(x));
}

inline F32 tanh(F32 x) {
  const F32 one = splat(1.0F);
  return sub(one, div(splat(2.0F), add(one, exp(add(x, x)))));
}

/// The error function to 2e-7 (Abramowitz and Stegun, 7.1.26).
inline F32 erf(F32 x) {
  const F32 one = splat(1.0F);
  const F32 size = absolute(x);
  const F32 t = div(one, fma(size, splat(0.3275911F), one));
  F32 p = splat(1.061405429F);
  p = fma(p, t, splat(-1.453152027F));
  p = fma(p, t, splat(1.421413741F));
  p = fma(p, t, splat(-0.284496736F));
  p = fma(p, t, splat(0.254829592F));
  const F32 positive = sub(one, mul(mul(p, t), exp(sub(zero_f32(), mul(x, x)))));
  return where_less(x, zero_f32(), sub(zero_f32(), positive), positive);
}

inline F32 gelu_erf(F32 x) {
  const F32 phi = mul(splat(0.5F), add(splat(1.0F), erf(mul(x, splat(0.70710678F)))));
  return mul(x, phi);
}

inline F32 gelu_tanh(F32 x) {
  const F32 cube = mul(mul(x, x), x);
  const F32 inner = mul(splat(0.79788456F), fma(cube, splat(0.044715F), x));
  return mul(mul(splat(0.5F), x), add(splat(1.0F), tanh(inner)));
}

inline F32 gelu_quick(F32 x) {
  return mul(x, sigmoid(mul(splat(1.702F), x)));
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
