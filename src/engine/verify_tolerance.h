#pragma once

#include <mlx/dtype.h>

#include <algorithm>

namespace whimbrel::verify {

/// A unit in the last place of a value near 1.
inline double unit_of(mlx::core::Dtype dtype) {
  if (dtype == mlx::core::float32) {
    return 0x1p-23;
  }
  return dtype == mlx::core::float16 ? 0x1p-10 : 0x1p-7;
}

/// How far two ways of computing one thing may lie apart, for an activation dtype: each row (of a
/// token or a patch) as a share of its own largest value. Ways differ in the order of sums only, so
/// what is allowed is rounding, a few units of the dtype: it adds up over a model's layers.
///   float32   what the project's tests allow against transformers (tests/support/tolerance.h)
///   float16   ten units
///   bfloat16  six to seven units: some 36 layers of two rounded additions each give
///             2^-8 * sqrt(72) = 3 %
/// Seen in float32 on the bundled checkpoints, largest of all checks: 4.3e-6.
inline double tolerance_of(mlx::core::Dtype dtype) {
  if (dtype == mlx::core::float32) {
    return 1e-3;
  }
  return dtype == mlx::core::float16 ? 1e-2 : 5e-2;
}

/// Of two results in different dtypes.
inline double tolerance_of(mlx::core::Dtype one, mlx::core::Dtype other) {
  return std::max(tolerance_of(one), tolerance_of(other));
}

/// A token is decided where the best logit leads by this much: then every way has to choose it.
inline constexpr double kDecidedGap = 2.0;

}  // namespace whimbrel::verify
