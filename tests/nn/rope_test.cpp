#include "nn/rope.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <cmath>
#include <numeric>

namespace whimbrel::nn {
namespace {

namespace mx = mlx::core;

std::vector<float> to_floats(mx::array array) {
  array = mx::contiguous(array);
  array.eval();
  return {array.data<float>(), array.data<float>() + array.size()};
}

TEST(Rope, chunked_axes_lie_one_behind_the_other) {
  const std::vector<int> section = {16, 24, 24};
  const std::vector<int> axes = chunked_axes(section);
  ASSERT_EQ(axes.size(), 64U);
  for (size_t i = 0; i < axes.size(); ++i) {
    EXPECT_EQ(axes[i], i < 16 ? 0 : i < 40 ? 1 : 2) << i;
  }
}

/// Height and width take every third frequency while they have any left; the rest is time's.
TEST(Rope, interleaved_axes_take_turns) {
  const std::vector<int> axes = interleaved_axes(std::vector<int>{24, 20, 20});
  ASSERT_EQ(axes.size(), 64U);
  for (size_t i = 0; i < axes.size(); ++i) {
    EXPECT_EQ(axes[i], i < 60 ? static_cast<int>(i % 3) : 0) << i;
  }
  EXPECT_EQ(
      interleaved_axes(std::vector<int>{4, 2, 2}), (std::vector<int>{0, 1, 2, 0, 1, 2, 0, 0})
  );
  EXPECT_EQ(
      interleaved_axes(std::vector<int>{3, 3, 2}), (std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1})
  );
}

TEST(Rope, frequencies_fall_from_one) {
  const std::vector<float> frequencies = inverse_frequencies(1e6, 128);
  ASSERT_EQ(frequencies.size(), 64U);
  EXPECT_FLOAT_EQ(frequencies[0], 1.0F);
  EXPECT_FLOAT_EQ(frequencies[1], static_cast<float>(std::pow(1e6, -1.0 / 64)));
  EXPECT_FLOAT_EQ(frequencies[63], static_cast<float>(std::pow(1e6, -63.0 / 64)));
}

TEST(Rope, tables_take_each_frequency_from_its_axis) {
  const Rope rope(100.0, 6, {0, 1, 2});
  const std::vector<int32_t> time = {7, 7};
  const std::vector<int32_t> row = {8, 9};
  const std::vector<int32_t> column = {3, 4};
  const std::array<std::span<const int32_t>, 3> positions = {time, row, column};
  const ops::RopePlan plan = rope.plan(positions);
  ASSERT_TRUE(plan.tables);
  const std::vector<float> cos = to_floats(plan.tables->cos);
  ASSERT_EQ(cos.size(), 6U);
  const std::vector<float> f = inverse_frequencies(100.0, 6);
  EXPECT_FLOAT_EQ(cos[0], std::cos(7 * f[0]));
  EXPECT_FLOAT_EQ(cos[4], std::cos(9 * f[1]));
  EXPECT_FLOAT_EQ(cos[5], std::cos(4 * f[2]));
}

/// A table of equal axes must rotate as the offset form does (spec: text is plain rope).
TEST(Rope, table_and_offset_agree_on_text) {
  const Rope rope(1e6, 64, chunked_axes(std::vector<int>{8, 12, 12}));
  std::vector<int32_t> axis(5);
  std::iota(axis.begin(), axis.end(), 2000);
  const std::array<std::span<const int32_t>, 3> positions = {axis, axis, axis};
  const ops::RopeTables tables = *rope.plan(positions).tables;
  const ops::RopePlan offset = rope.plan(2000);
  const mx::array x = mx::random::normal({1, 2, 5, 64});
  const mx::array low = mx::slice(x, {0, 0, 0, 0}, {1, 2, 5, 32});
  const mx::array high = mx::slice(x, {0, 0, 0, 32}, {1, 2, 5, 64});
  const mx::array by_table = mx::concatenate(
      {mx::subtract(mx::multiply(low, tables.cos), mx::multiply(high, tables.sin)),
       mx::add(mx::multiply(high, tables.cos), mx::multiply(low, tables.sin))},
      -1
  );
  const mx::array by_offset =
      mx::fast::rope(x, 64, false, std::nullopt, 1.0F, offset.offset, offset.periods);
  EXPECT_LT(mx::max(mx::abs(mx::subtract(by_table, by_offset))).item<float>(), 2e-3F);
}

TEST(Rope, vision_angles_are_rows_then_columns) {
  const std::vector<int32_t> rows = {3};
  const std::vector<int32_t> columns = {5};
  const std::vector<float> sin = to_floats(vision_rope(rows, columns, 8).sin);
  ASSERT_EQ(sin.size(), 4U);
  EXPECT_FLOAT_EQ(sin[0], std::sin(3.0F));
  EXPECT_FLOAT_EQ(sin[1], std::sin(3.0F / 100));
  EXPECT_FLOAT_EQ(sin[2], std::sin(5.0F));
  EXPECT_FLOAT_EQ(sin[3], std::sin(5.0F / 100));
}

}  // namespace
}  // namespace whimbrel::nn
