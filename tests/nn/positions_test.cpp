#include "nn/positions.h"

#include <gtest/gtest.h>

namespace whimbrel::nn {
namespace {

using Axis = std::vector<int32_t>;

TEST(Positions, text_advances_all_axes) {
  const Positions positions = mrope_positions(4, {});
  for (const Axis& axis : positions.axes) {
    EXPECT_EQ(axis, (Axis{0, 1, 2, 3}));
  }
  EXPECT_EQ(positions.delta, 0);
}

TEST(Positions, a_picture_keeps_its_rows_and_columns) {
  const std::vector<VisionBlock> blocks = {{3, 2, 3, {0}}};
  const Positions positions = mrope_positions(11, blocks);
  EXPECT_EQ(positions.axes[0], (Axis{0, 1, 2, 3, 3, 3, 3, 3, 3, 6, 7}));
  EXPECT_EQ(positions.axes[1], (Axis{0, 1, 2, 3, 3, 3, 4, 4, 4, 6, 7}));
  EXPECT_EQ(positions.axes[2], (Axis{0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 7}));
  EXPECT_EQ(positions.delta, -3);
}

TEST(Positions, a_second_picture_starts_behind_the_text) {
  const std::vector<VisionBlock> blocks = {{3, 2, 3, {0}}, {11, 4, 2, {0}}};
  const Positions positions = mrope_positions(21, blocks);
  const auto from = [](const Axis& axis, int first) {
    return Axis(axis.begin() + first, axis.end());
  };
  EXPECT_EQ(from(positions.axes[0], 11), (Axis{8, 8, 8, 8, 8, 8, 8, 8, 12, 13}));
  EXPECT_EQ(from(positions.axes[1], 11), (Axis{8, 8, 9, 9, 10, 10, 11, 11, 12, 13}));
  EXPECT_EQ(from(positions.axes[2], 11), (Axis{8, 9, 8, 9, 8, 9, 8, 9, 12, 13}));
  EXPECT_EQ(positions.delta, -7);
}

TEST(Positions, what_follows_frames_starts_behind_the_largest_axis) {
  struct Row {
    std::vector<int32_t> frame_times;
    int32_t tail;
    int delta;
  };
  const std::vector<Row> rows = {{{0, 1, 2}, 5, -9}, {{0, 2, 4}, 7, -7}, {{0, 3, 6, 9}, 12, -6}};
  for (const Row& row : rows) {
    const std::vector<VisionBlock> blocks = {{2, 2, 2, row.frame_times}};
    const int tokens = 2 + blocks[0].tokens() + 2;
    const Positions positions = mrope_positions(tokens, blocks);
    EXPECT_EQ(positions.axes[0][static_cast<size_t>(tokens) - 2], row.tail);
    EXPECT_EQ(positions.axes[0][static_cast<size_t>(tokens) - 3], 2 + row.frame_times.back());
    EXPECT_EQ(positions.delta, row.delta);
  }
}

TEST(Positions, a_prompt_may_end_on_a_picture) {
  const std::vector<VisionBlock> blocks = {{1, 2, 3, {0}}};
  const Positions positions = mrope_positions(7, blocks);
  EXPECT_EQ(positions.axes[0].size(), 7U);
  EXPECT_EQ(positions.delta, 1 + 3 - 7);
}

}  // namespace
}  // namespace whimbrel::nn
