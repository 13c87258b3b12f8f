#pragma once

#include <mlx/array.h>

#include <vector>

namespace whimbrel::verify {

namespace mx = mlx::core;

/// How far one result lies from another. Rows are measured each by its own: few tokens carry values
/// thousands of times as large as the others', beside which an error in those would not be seen.
struct Difference {
  /// Largest |found - expected| of a row, as a share of the row's largest |expected|; NaN where a
  /// value of either is not finite.
  double relative = 0;
  double absolute = 0;  // in that row
  int row = 0;

  /// False for NaN too.
  bool within(double tolerance) const { return relative <= tolerance; }
};

/// Whether a difference is the larger one; NaN is larger than any number.
bool is_larger(double relative, double than);

/// The numbers of an array of any dtype.
std::vector<float> to_floats(const mx::array& array);

/// Both [rows, ...], any dtype, one shape.
Difference difference(const mx::array& found, const mx::array& expected);

/// Logits of consecutive positions against those that they should be.
struct LogitDifference {
  Difference largest = {};  // its row is the position
  int positions = 0;
  int decided = 0;                // positions whose expected best logit leads by kDecidedGap
  std::vector<int> changed = {};  // decided positions with another best token

  void add(const LogitDifference& next);
};

/// Both [rows, vocab_size]; the first row stands at `position`.
LogitDifference logit_difference(const mx::array& found, const mx::array& expected, int position);

}  // namespace whimbrel::verify
