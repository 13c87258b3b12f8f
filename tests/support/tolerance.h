#pragma once

namespace whimbrel::test {

/// How far from the reference a result may lie, as a share of the reference's largest value. One
/// table for all tests; rows are activation dtypes of a backend.
struct Tolerance {
  double
      features;  // of the vision tower, from our own pixels (within one level of the reference's)
  double logits;
};

inline constexpr Tolerance kReferenceFloat32 = {.features = 1e-3, .logits = 1e-3};

/// Logits by our own kernels: activations of products with codes in 16 bits, keys and values in
/// bfloat16; on tiles and behind pictures activations of many rows in bfloat16. Measured: 3.1e-3,
/// on tiles 6.3e-3.
inline constexpr double kKernelLogits = 1e-2;

/// A step is decided where the reference's best logit leads by this much: then the token must
/// agree.
inline constexpr double kDecidedGap = 2.0;

}  // namespace whimbrel::test
