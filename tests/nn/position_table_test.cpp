#include "nn/position_table.h"

#include <gtest/gtest.h>

namespace whimbrel::nn {
namespace {

constexpr int kSide = 48;

/// Where the patches of the first row stand in the table, by the corners' shares.
std::vector<float> columns_of(const Grid& grid) {
  const PatchPositions positions = patch_positions(grid, 2);
  const TableCorners corners = table_corners(grid, 2, kSide);
  std::vector<float> columns(static_cast<size_t>(grid[2]), 0.0F);
  for (size_t patch = 0; patch < positions.rows.size(); ++patch) {
    if (positions.rows[patch] != 0) {
      continue;
    }
    float& column = columns[static_cast<size_t>(positions.columns[patch])];
    for (size_t corner = 0; corner < 4; ++corner) {
      const auto entry = static_cast<float>(corners.rows[corner][patch] % kSide);
      column += corners.weights[corner][patch] * entry;
    }
  }
  return columns;
}

/// Both ends of the table lie on the outermost patches (align-corners), not half a patch inside.
TEST(PositionTable, outermost_patches_take_outermost_entries) {
  const std::vector<float> columns = columns_of({1, 4, 14});
  for (size_t i = 0; i < columns.size(); ++i) {
    EXPECT_NEAR(columns[i], static_cast<double>(i) * 47 / 13, 1e-4) << i;
  }
  EXPECT_NEAR(columns[1], 3.6154, 1e-4);
  EXPECT_EQ(columns[13], 47);
}

TEST(PositionTable, a_grid_of_the_tables_size_is_the_table) {
  const TableCorners corners = table_corners({1, kSide, kSide}, 2, kSide);
  const PatchPositions positions = patch_positions({1, kSide, kSide}, 2);
  for (size_t patch = 0; patch < positions.rows.size(); ++patch) {
    const int entry = positions.rows[patch] * kSide + positions.columns[patch];
    float share = 0;
    for (size_t corner = 0; corner < 4; ++corner) {
      share += corners.rows[corner][patch] == entry ? corners.weights[corner][patch] : 0;
    }
    ASSERT_NEAR(share, 1, 1e-4) << patch;
  }
}

TEST(PositionTable, shares_of_the_corners_are_those_of_the_distances) {
  const TableCorners corners = table_corners({1, 14, 14}, 2, kSide);
  // The patch in row 1 and column 1 stands at (3.6154, 3.6154).
  const float far = 47.0F / 13 - 3;
  const float near = 1 - far;
  const std::vector<int> rows = {3 * kSide + 3, 3 * kSide + 4, 4 * kSide + 3, 4 * kSide + 4};
  const std::vector<float> weights = {near * near, near * far, far * near, far * far};
  for (size_t corner = 0; corner < 4; ++corner) {
    EXPECT_EQ(corners.rows[corner][3], rows[corner]);
    EXPECT_NEAR(corners.weights[corner][3], weights[corner], 1e-5);
  }
}

TEST(PositionTable, frames_share_their_positions) {
  const TableCorners two = table_corners({2, 4, 6}, 2, kSide);
  const TableCorners one = table_corners({1, 4, 6}, 2, kSide);
  ASSERT_EQ(two.rows[0].size(), 48U);
  for (size_t patch = 0; patch < 24; ++patch) {
    EXPECT_EQ(two.rows[3][24 + patch], one.rows[3][patch]);
    EXPECT_EQ(two.weights[1][24 + patch], one.weights[1][patch]);
  }
}

}  // namespace
}  // namespace whimbrel::nn
