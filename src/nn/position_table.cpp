#include "nn/position_table.h"

#include <mlx/mlx.h>

#include <algorithm>

namespace whimbrel::nn {

namespace {

/// Where one row or column of patches falls between two entries of the table.
struct Place {
  int low;
  int high;
  float share_of_high;
};

/// torch.linspace(0, side - 1, count) in float32: from both ends towards the middle.
std::vector<Place> places(int count, int side) {
  const auto last = static_cast<float>(side - 1);
  const float step = count > 1 ? last / static_cast<float>(count - 1) : 0.0F;
  std::vector<Place> found;
  for (int i = 0; i < count; ++i) {
    const float at = i < count / 2 || count == 1 ? step * static_cast<float>(i)
                                                 : last - step * static_cast<float>(count - 1 - i);
    const int low = static_cast<int>(at);
    found.push_back({low, std::min(low + 1, side - 1), at - static_cast<float>(low)});
  }
  return found;
}

}  // namespace

TableCorners table_corners(const Grid& grid, int merge_size, int side) {
  const PatchPositions positions = patch_positions(grid, merge_size);
  const std::vector<Place> rows = places(grid[1], side);
  const std::vector<Place> columns = places(grid[2], side);
  TableCorners corners;
  const auto add = [&](size_t corner, int row, int column, float weight) {
    corners.rows[corner].push_back(row * side + column);
    corners.weights[corner].push_back(weight);
  };
  for (size_t patch = 0; patch < positions.rows.size(); ++patch) {
    const Place& row = rows[static_cast<size_t>(positions.rows[patch])];
    const Place& column = columns[static_cast<size_t>(positions.columns[patch])];
    const float down = row.share_of_high;
    const float right = column.share_of_high;
    add(0, row.low, column.low, (1 - down) * (1 - right));
    add(1, row.low, column.high, (1 - down) * right);
    add(2, row.high, column.low, down * (1 - right));
    add(3, row.high, column.high, down * right);
  }
  return corners;
}

mx::array interpolate_positions(
    const ops::Ops& ops, const ops::PackedMatrix& table, const TableCorners& corners
) {
  const auto corner = [&](size_t index) {
    const int patches = static_cast<int>(corners.rows[index].size());
    const mx::array ids(corners.rows[index].begin(), {patches});
    const mx::array weights(corners.weights[index].begin(), {patches, 1});
    return mx::multiply(ops.embed(table, ids), mx::astype(weights, ops.dtype()));
  };
  return mx::add(mx::add(mx::add(corner(0), corner(1)), corner(2)), corner(3));
}

}  // namespace whimbrel::nn
