#include "engine/verify_difference.h"

#include <mlx/mlx.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/verify_tolerance.h"

namespace whimbrel::verify {

namespace {

/// A row's own scale is at least this share of the largest row's: what is nothing but rounding is
/// measured by nothing smaller.
constexpr double kLeastScale = 1e-3;

mx::array to_rows(const mx::array& array) {
  const int rows = array.shape(0);
  return mx::reshape(mx::astype(array, mx::float32), {rows, static_cast<int>(array.size()) / rows});
}

/// Largest |x| of each row. NaN and infinity become NaN: a maximum may pass them over.
std::vector<float> row_peaks(const mx::array& rows) {
  const mx::array finite = mx::all(mx::isfinite(rows), 1);
  const mx::array nan(std::numeric_limits<float>::quiet_NaN(), mx::float32);
  return to_floats(mx::where(finite, mx::max(mx::abs(rows), 1), nan));
}

double share(double part, double of) {
  return part == 0 ? 0 : part / of;
}

std::vector<uint32_t> best_tokens(const mx::array& logits) {
  mx::array best = mx::argmax(logits, 1);
  best.eval();
  return {best.data<uint32_t>(), best.data<uint32_t>() + best.size()};
}

/// By how much the best logit of each row leads.
std::vector<float> leads(const mx::array& logits) {
  const mx::array two = mx::topk(mx::astype(logits, mx::float32), 2, 1);
  return to_floats(mx::subtract(mx::max(two, 1), mx::min(two, 1)));
}

}  // namespace

bool is_larger(double relative, double than) {
  return std::isnan(relative) ? !std::isnan(than) : relative > than;
}

std::vector<float> to_floats(const mx::array& array) {
  mx::array values = mx::contiguous(mx::astype(array, mx::float32));
  values.eval();
  return {values.data<float>(), values.data<float>() + values.size()};
}

Difference difference(const mx::array& found, const mx::array& expected) {
  const mx::array rows = to_rows(expected);
  const std::vector<float> scales = row_peaks(rows);
  const std::vector<float> apart = row_peaks(mx::subtract(to_rows(found), rows));
  const double least = kLeastScale * *std::ranges::max_element(scales);
  Difference largest;
  for (size_t row = 0; row < apart.size(); ++row) {
    const double relative = share(apart[row], std::max<double>(scales[row], least));
    if (is_larger(relative, largest.relative)) {
      largest = {relative, apart[row], static_cast<int>(row)};
    }
  }
  return largest;
}

void LogitDifference::add(const LogitDifference& next) {
  if (is_larger(next.largest.relative, largest.relative)) {
    largest = next.largest;
  }
  positions += next.positions;
  decided += next.decided;
  changed.insert(changed.end(), next.changed.begin(), next.changed.end());
}

LogitDifference logit_difference(const mx::array& found, const mx::array& expected, int position) {
  const std::vector<uint32_t> found_best = best_tokens(found);
  const std::vector<uint32_t> best = best_tokens(expected);
  const std::vector<float> lead = leads(expected);
  LogitDifference result{
      .largest = difference(found, expected), .positions = found.shape(0), .changed = {}
  };
  result.largest.row += position;
  for (size_t row = 0; row < best.size(); ++row) {
    if (lead[row] < kDecidedGap) {
      continue;
    }
    ++result.decided;
    if (found_best[row] != best[row]) {
      result.changed.push_back(position + static_cast<int>(row));
    }
  }
  return result;
}

}  // namespace whimbrel::verify
