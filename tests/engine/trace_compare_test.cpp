#include "engine/trace_compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/error.h"

namespace whimbrel {
namespace {

/// Rows whose best token leads by `gap`; two builds of ours make two of them.
Trace trace_of(const std::string& build_id, int positions, float gap = 3) {
  Trace trace{
      .header = {
          .build = Json::object({{"build_id", build_id}, {"isa", "avx2"}}),
          .model = std::string(64, 'a'),
          .input = std::string(64, 'b'),
          .ops = "reference",
          .dtype = "float32",
          .depth = 10,
          .width = 1,
          .positions = positions,
      }
  };
  for (int i = 0; i < positions; ++i) {
    trace.rows.push_back(
        {.pos = 10 + i,
         .id = i,
         .target = i + 1,
         .nll = std::log(4.0),
         .top_ids = {7, 8, 9},
         .top_logits = {5, 5 - gap, -20}}
    );
  }
  return trace;
}

void swap_best(TraceRow& row) {
  std::swap(row.top_ids[0], row.top_ids[1]);
}

/// The exit code of a comparison; 0 where it passes.
int exit_code(const Trace& reference, const Trace& candidate, const CompareOptions& options = {}) {
  try {
    require_comparable(reference, candidate, options);
    require_agreement(compare_traces(reference, candidate, options.decided), options);
  } catch (const Error& error) {
    return static_cast<int>(error.fault());
  }
  return 0;
}

TEST(TraceCompare, passes_where_all_agree) {
  EXPECT_EQ(exit_code(trace_of("1", 32), trace_of("2", 32)), 0);
}

TEST(TraceCompare, fails_on_one_decided_disagreement) {
  Trace candidate = trace_of("2", 64);
  swap_best(candidate.rows[40]);
  const Comparison comparison = compare_traces(trace_of("1", 64), candidate, 2);
  EXPECT_EQ(comparison.decided_disagreements, std::vector<int>{50});
  EXPECT_EQ(exit_code(trace_of("1", 64), candidate), 1);
  // However few positions are decided, a wrong one is wrong.
  EXPECT_EQ(exit_code(trace_of("1", 64), candidate, {.decided = 2.9}), 1);
}

TEST(TraceCompare, the_reference_decides) {
  Trace reference = trace_of("1", 64);
  reference.rows[40].top_logits[1] = 4;  // leads by 1 only
  Trace candidate = trace_of("2", 64);
  swap_best(candidate.rows[40]);
  EXPECT_EQ(exit_code(reference, candidate), 0);
  EXPECT_EQ(exit_code(reference, candidate, {.decided = 1}), 1);
  const Comparison comparison = compare_traces(reference, candidate, 2);
  EXPECT_EQ(comparison.disagreements, 1);
  EXPECT_EQ(comparison.decided, 63);
  EXPECT_EQ(exit_code(candidate, reference), 1);
}

TEST(TraceCompare, a_gap_of_the_threshold_is_decided) {
  EXPECT_EQ(compare_traces(trace_of("1", 5, 2), trace_of("2", 5, 2), 2).decided, 5);
  EXPECT_EQ(compare_traces(trace_of("1", 5, 1.99F), trace_of("2", 5, 1.99F), 2).decided, 0);
}

TEST(TraceCompare, too_few_decided_positions_prove_nothing) {
  EXPECT_EQ(exit_code(trace_of("1", 31), trace_of("2", 31)), 2);
  EXPECT_EQ(exit_code(trace_of("1", 100, 1), trace_of("2", 100, 1)), 2);
  EXPECT_EQ(exit_code(trace_of("1", 100), trace_of("2", 100), {.decided = 3.5}), 2);
}

TEST(TraceCompare, refuses_what_cannot_be_compared) {
  const std::vector<std::function<void(Trace&)>> changes = {
      [](Trace& trace) { trace.header.input[0] = 'c'; },
      [](Trace& trace) { trace.header.depth = 11; },
      [](Trace& trace) { trace = trace_of("2", 39); },
      [](Trace& trace) { trace.rows[3].id = 99; },
      [](Trace& trace) { trace.rows[39].target = 99; },
  };
  for (const auto& change : changes) {
    Trace candidate = trace_of("2", 40);
    ASSERT_EQ(exit_code(trace_of("1", 40), candidate), 0);
    change(candidate);
    EXPECT_EQ(exit_code(trace_of("1", 40), candidate), 2);
    EXPECT_EQ(exit_code(trace_of("1", 40), candidate, {.self = true, .other_model = true}), 2);
  }
}

TEST(TraceCompare, refuses_a_build_against_itself) {
  const Trace trace = trace_of("1", 40);
  EXPECT_EQ(exit_code(trace, trace), 2);
  EXPECT_EQ(exit_code(trace, trace, {.self = true}), 0);
  const std::vector<std::function<void(TraceHeader&)>> differences = {
      [](TraceHeader& header) { header.build["build_id"] = "2"; },
      [](TraceHeader& header) { header.build["isa"] = "scalar"; },
      [](TraceHeader& header) { header.ops = "cpu"; },
      [](TraceHeader& header) { header.dtype = "bfloat16"; },
      [](TraceHeader& header) { header.width = 4; },
      [](TraceHeader& header) { header.prefill_int8 = true; },
  };
  for (const auto& differ : differences) {
    Trace other = trace;
    differ(other.header);
    EXPECT_EQ(exit_code(trace, other), 0);
  }
  Trace reordered = trace;
  reordered.header.build = Json::object({{"isa", "avx2"}, {"build_id", "1"}});
  EXPECT_EQ(exit_code(trace, reordered), 2);
}

TEST(TraceCompare, another_model_may_fail_but_not_pass) {
  Trace other = trace_of("2", 40);
  other.header.model[0] = 'c';
  EXPECT_EQ(exit_code(trace_of("1", 40), other), 2);
  EXPECT_EQ(exit_code(trace_of("1", 40), other, {.other_model = true}), 0);
  swap_best(other.rows[0]);
  EXPECT_EQ(exit_code(trace_of("1", 40), other), 1);
}

TEST(TraceCompare, counts_by_gap) {
  Trace reference = trace_of("1", 7);
  const std::vector<float> gaps = {0, 0.5F, 0.75F, 1, 2, 9.5F, 10};
  for (size_t i = 0; i < gaps.size(); ++i) {
    reference.rows[i].top_logits[1] = 5 - gaps[i];
  }
  Trace candidate = trace_of("2", 7);
  swap_best(candidate.rows[2]);
  const Comparison comparison = compare_traces(reference, candidate, 2);
  const std::vector<std::array<double, 3>> expected = {
      {0, 1, 0}, {0.5, 2, 1}, {1, 1, 0}, {2, 1, 0}, {5, 1, 0}, {10, 1, 0}
  };
  ASSERT_EQ(comparison.buckets.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const GapBucket& bucket = comparison.buckets[i];
    EXPECT_EQ(
        (std::array<double, 3>{bucket.gap, 0.0 + bucket.positions, 0.0 + bucket.disagreements}),
        expected[i]
    );
  }
  EXPECT_EQ(comparison.decided, 3);
  EXPECT_EQ(comparison.disagreements, 1);
}

TEST(TraceCompare, finds_the_largest_difference_of_common_tokens) {
  Trace candidate = trace_of("2", 7);
  candidate.rows[2].top_logits[1] = 2.5F;     // 0.5 off
  candidate.rows[4].top_logits[2] = -20.75F;  // 0.75 off
  candidate.rows[5].top_ids = {7, 8, 1000};   // nothing to compare the third one with
  candidate.rows[5].top_logits = {5, 2, -100};
  const Comparison comparison = compare_traces(trace_of("1", 7), candidate, 2);
  ASSERT_TRUE(comparison.largest);
  EXPECT_EQ(comparison.largest->pos, 14);
  EXPECT_EQ(comparison.largest->id, 9);
  EXPECT_EQ(comparison.largest->size(), 0.75);
}

TEST(TraceCompare, says_both_perplexities) {
  Trace candidate = trace_of("2", 2);
  candidate.rows[0].nll = std::log(2.0);
  candidate.rows[1].nll = std::log(8.0);
  candidate.rows[1].nll += std::log(4.0);
  const Comparison comparison = compare_traces(trace_of("1", 2), candidate, 2);
  EXPECT_DOUBLE_EQ(comparison.reference_perplexity, 4);
  EXPECT_DOUBLE_EQ(comparison.candidate_perplexity, 8);
}

}  // namespace
}  // namespace whimbrel
