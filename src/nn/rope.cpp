#include "nn/rope.h"

#include <mlx/mlx.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace whimbrel::nn {

namespace mx = mlx::core;

namespace {

constexpr double kVisionTheta = 10000.0;

/// Collects angles row by row and turns them into tables.
class AngleTable {
 public:
  explicit AngleTable(size_t angles) {
    cos_.reserve(angles);
    sin_.reserve(angles);
  }

  /// Position times frequency in float32, as the models were trained; the functions in float64.
  void add(int32_t position, float frequency) {
    const float angle = static_cast<float>(position) * frequency;
    cos_.push_back(static_cast<float>(std::cos(static_cast<double>(angle))));
    sin_.push_back(static_cast<float>(std::sin(static_cast<double>(angle))));
  }

  ops::RopeTables tables(size_t rows) const {
    const mx::Shape shape = {static_cast<int>(rows), static_cast<int>(cos_.size() / rows)};
    return {mx::array(cos_.begin(), shape), mx::array(sin_.begin(), shape)};
  }

 private:
  std::vector<float> cos_;
  std::vector<float> sin_;
};

mx::array reciprocals(const std::vector<float>& frequencies) {
  std::vector<float> periods;
  for (const float frequency : frequencies) {
    periods.push_back(static_cast<float>(1.0 / static_cast<double>(frequency)));
  }
  return mx::array(periods.begin(), {static_cast<int>(periods.size())});
}

}  // namespace

std::vector<int> chunked_axes(std::span<const int> mrope_section) {
  std::vector<int> axes;
  for (size_t axis = 0; axis < mrope_section.size(); ++axis) {
    axes.insert(axes.end(), static_cast<size_t>(mrope_section[axis]), static_cast<int>(axis));
  }
  return axes;
}

std::vector<int> interleaved_axes(std::span<const int> mrope_section) {
  const int count = std::accumulate(mrope_section.begin(), mrope_section.end(), 0);
  std::vector<int> axes(static_cast<size_t>(count), 0);
  for (size_t axis = 1; axis < mrope_section.size(); ++axis) {
    const int end = std::min(3 * mrope_section[axis], count);
    for (int i = static_cast<int>(axis); i < end; i += 3) {
      axes[static_cast<size_t>(i)] = static_cast<int>(axis);
    }
  }
  return axes;
}

std::vector<float> inverse_frequencies(double theta, int dims) {
  std::vector<float> frequencies;
  for (int i = 0; i < dims / 2; ++i) {
    frequencies.push_back(static_cast<float>(std::pow(theta, -2.0 * i / dims)));
  }
  return frequencies;
}

Rope::Rope(double theta, int head_dim, std::vector<int> axes)
    : frequencies_(inverse_frequencies(theta, head_dim)),
      axes_(std::move(axes)),
      periods_(reciprocals(frequencies_)) {}

ops::RopePlan Rope::plan(int offset) const {
  return {periods_, offset, std::nullopt};
}

ops::RopePlan Rope::plan(int offset, int rows) const {
  std::vector<int32_t> positions(static_cast<size_t>(rows));
  std::iota(positions.begin(), positions.end(), offset);
  ops::RopePlan tabled = plan({{positions, positions, positions}});
  tabled.offset = offset;
  return tabled;
}

ops::RopePlan Rope::plan(std::span<const std::span<const int32_t>, 3> positions) const {
  const size_t rows = positions[0].size();
  AngleTable angles(rows * frequencies_.size());
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < frequencies_.size(); ++i) {
      angles.add(positions[static_cast<size_t>(axes_[i])][row], frequencies_[i]);
    }
  }
  return {periods_, 0, angles.tables(rows)};
}

ops::RopeTables vision_rope(
    std::span<const int32_t> rows, std::span<const int32_t> columns, int head_dim
) {
  const std::vector<float> frequencies = inverse_frequencies(kVisionTheta, head_dim / 2);
  AngleTable angles(rows.size() * frequencies.size() * 2);
  for (size_t patch = 0; patch < rows.size(); ++patch) {
    for (const int32_t position : {rows[patch], columns[patch]}) {
      for (const float frequency : frequencies) {
        angles.add(position, frequency);
      }
    }
  }
  return angles.tables(rows.size());
}

}  // namespace whimbrel::nn
