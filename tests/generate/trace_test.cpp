#include "generate/trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace whimbrel {
namespace {

Prompt prompt_of(std::vector<int32_t> ids) {
  Prompt prompt;
  prompt.ids = std::move(ids);
  return prompt;
}

/// The fault and text of what `run` throws.
template <typename Run>
std::pair<Fault, std::string> failure_of(const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    return {error.fault(), error.what()};
  }
  return {};
}

TEST(TraceRow, holds_token_target_and_the_best) {
  const std::vector<float> logits = {1, 3, -2, 3, 2};
  const TraceRow row = trace_row(prompt_of({7, 4, 0}), 1, logits, 4);
  EXPECT_EQ(row.pos, 1);
  EXPECT_EQ(row.id, 4);
  EXPECT_EQ(row.target, 0);
  EXPECT_EQ(row.top_ids, (std::vector<int32_t>{1, 3, 4, 0}));  // of equals the lower id first
  EXPECT_EQ(row.top_logits, (std::vector<float>{3, 3, 2, 1}));
  const double total = 2 * std::exp(3.0) + std::exp(2.0) + std::exp(1.0) + std::exp(-2.0);
  EXPECT_NEAR(row.nll, std::log(total) - 1, 1e-14);
}

TEST(TraceRow, nll_of_large_logits_is_exact) {
  // ln(1 + e^-20): float32 would say 0.
  const std::vector<float> logits = {1020, 1000};
  EXPECT_NEAR(trace_row(prompt_of({0, 0}), 0, logits, 2).nll, std::log1p(std::exp(-20.0)), 1e-15);
  EXPECT_NEAR(trace_row(prompt_of({0, 1}), 0, logits, 2).nll, 20, 1e-8);
}

TEST(TraceRow, refuses_logits_that_are_not_finite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const std::vector<float> logits = {1, bad, 2};
    const auto [fault, text] = failure_of([&] { trace_row(prompt_of({0, 1}), 0, logits, 2); });
    EXPECT_EQ(fault, Fault::model);
    EXPECT_NE(text.find("position 0"), std::string::npos) << text;
  }
}

TEST(TraceRoom, needs_a_target_behind_the_last_position) {
  const TraceOptions options{.depth = 3, .positions = 4};
  EXPECT_NO_THROW(require_trace_room(prompt_of(std::vector<int32_t>(8)), options, 7));
  const auto [fault, text] =
      failure_of([&] { require_trace_room(prompt_of(std::vector<int32_t>(7)), options, 100); });
  EXPECT_EQ(fault, Fault::input);
  EXPECT_NE(text.find("got an input of 7 tokens, expected at least 8"), std::string::npos) << text;
}

TEST(TraceRoom, keeps_inside_the_context) {
  const TraceOptions options{.depth = 3, .positions = 4};
  const auto [fault, text] =
      failure_of([&] { require_trace_room(prompt_of(std::vector<int32_t>(9)), options, 6); });
  EXPECT_EQ(fault, Fault::input);
  EXPECT_NE(text.find("context of 6"), std::string::npos) << text;
}

TEST(TraceOptionsTest, are_checked) {
  EXPECT_NO_THROW(require_valid({}, 8));
  const std::vector<std::pair<std::string, TraceOptions>> wrong = {
      {"--depth", {.depth = -1}},
      {"--positions", {.positions = 0}},
      {"--width", {.width = 0}},
      {"--width", {.positions = 4, .width = 5}},
      {"--top", {.top = 1}},
      {"--top", {.top = 9}},
  };
  for (const auto& [flag, options] : wrong) {
    const auto [fault, text] = failure_of([&options] { require_valid(options, 8); });
    EXPECT_EQ(fault, Fault::usage);
    EXPECT_NE(text.find(flag), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace whimbrel
