// What a bench measures, and what it makes of its measurements.

#include "engine/bench_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "engine/bench_compare.h"
#include "engine/bench_statistics.h"

namespace whimbrel {
namespace {

constexpr int kContext = 32768;

std::vector<std::string> names(const std::vector<BenchCell>& cells) {
  std::vector<std::string> all;
  for (const BenchCell& cell : cells) {
    all.push_back(
        fmt::format(
            "{}@{}x{}{}", test_name(cell), cell.depth, cell.rows, cell.behind_image ? " behind" : ""
        )
    );
  }
  return all;
}

using Names = std::vector<std::string>;

TEST(BenchPlan, default_is_a_prefill_and_the_curve_of_contexts) {
  const Names expected = {
      "pp512@0x1", "tg128@64x1", "tg128@128x1", "tg128@512x1", "tg128@2048x1", "tg128@8192x1"
  };
  EXPECT_EQ(names(plan_cells({}, kContext, 0)), expected);
}

TEST(BenchPlan, default_depths_end_with_the_context) {
  const Names expected = {"pp512@0x1", "tg128@64x1", "tg128@128x1", "tg128@512x1"};
  EXPECT_EQ(names(plan_cells({}, 2048, 0)), expected);
}

TEST(BenchPlan, takes_every_combination_once_in_order) {
  const BenchOptions options = {
      .prompts = {32, 8, 8}, .generated = {4}, .depths = {16, 0}, .rows = {2, 1}
  };
  const Names expected = {
      "pp8@0x1", "pp8@16x1", "pp32@0x1", "pp32@16x1", "tg4@0x1", "tg4@16x1", "tg4@0x2", "tg4@16x2"
  };
  EXPECT_EQ(names(plan_cells(options, kContext, 0)), expected);
}

TEST(BenchPlan, zero_leaves_a_kind_out) {
  EXPECT_EQ(
      names(plan_cells({.prompts = {0}, .generated = {4}, .depths = {1}}, kContext, 0)),
      Names{"tg4@1x1"}
  );
  EXPECT_EQ(names(plan_cells({.prompts = {4}, .generated = {0}}, kContext, 0)), Names{"pp4@0x1"});
  EXPECT_THROW(plan_cells({.prompts = {0}, .generated = {0}}, kContext, 0), Error);
}

TEST(BenchPlan, a_picture_brings_its_tower_and_text_at_the_same_context) {
  const BenchOptions options = {
      .prompts = {0}, .generated = {4}, .depths = {64}, .image = Size{.height = 336, .width = 448}
  };
  const Names expected = {
      "tg4@64x1", "tower448x336@0x1", "ttft448x336@0x1", "tg4@210x1", "tg4@210x1 behind"
  };
  EXPECT_EQ(names(plan_cells(options, kContext, 210)), expected);
}

TEST(BenchPlan, control_doubles_the_first_decode) {
  const BenchOptions options = {
      .prompts = {8}, .generated = {4}, .depths = {64, 16}, .control = true
  };
  const std::vector<BenchCell> cells = plan_cells(options, kContext, 0);
  EXPECT_EQ(names(cells).back(), "tg4x2@16x1");
  EXPECT_TRUE(cells.back().doubled);
}

TEST(BenchPlan, refuses_what_the_context_has_no_room_for) {
  EXPECT_NO_THROW(plan_cells({.prompts = {1000}, .generated = {0}, .depths = {24}}, 1024, 0));
  for (const BenchOptions& options :
       {BenchOptions{.prompts = {1000}, .generated = {0}, .depths = {25}},
        BenchOptions{.prompts = {0}, .generated = {8}, .depths = {1017}},
        BenchOptions{.prompts = {0}, .generated = {1}, .depths = {1020}}}) {  // its warm-up
    try {
      plan_cells(options, 1024, 0);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::input);
      EXPECT_NE(std::string(error.what()).find("1024"), std::string::npos);
    }
  }
}

TEST(Statistics, of_odd_even_single_and_no_values) {
  const Statistics odd = statistics(std::array{3.0, 1.0, 8.0});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.mean, 4);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 8);
  EXPECT_DOUBLE_EQ(odd.stddev, std::sqrt(13.0));
  EXPECT_EQ(statistics(std::array{4.0, 1.0, 2.0, 100.0}).median, 3);
  EXPECT_EQ(statistics(std::array{5.0}).stddev, 0);
  EXPECT_EQ(statistics({}).median, 0);
}

TEST(CompareCell, gives_a_verdict_only_where_ranges_part) {
  const std::array a = {10.0, 10.2, 9.9};
  const std::array same = {10.0, 10.1, 9.9, 10.0};
  EXPECT_EQ(compare_cell(a, std::array{8.0, 8.1, 9.0}, same).verdict, BenchVerdict::faster);
  EXPECT_EQ(compare_cell(a, std::array{12.0, 11.0}, same).verdict, BenchVerdict::slower);
  EXPECT_EQ(compare_cell(a, std::array{8.0, 8.1, 9.95}, same).verdict, BenchVerdict::no_difference);
  EXPECT_DOUBLE_EQ(compare_cell(a, std::array{5.0}, same).ratio, 0.5);
}

TEST(CompareCell, gives_none_within_the_resolution) {
  const std::array a = {10.0, 10.2};
  const std::array b = {10.4, 10.5};
  EXPECT_EQ(compare_cell(a, b, std::array{10.0, 10.1}).verdict, BenchVerdict::slower);
  EXPECT_EQ(compare_cell(a, b, std::array{10.0, 12.0}).verdict, BenchVerdict::no_difference);
  EXPECT_NEAR(compare_cell(a, b, std::array{10.0, 12.0}).resolution, 0.2, 1e-12);
}

}  // namespace
}  // namespace whimbrel
