#include "generate/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.h"

namespace whimbrel {
namespace {

using Logits = std::vector<float>;

int32_t draw_once(const SamplingOptions& options, Logits logits, std::vector<int32_t> prompt = {}) {
  Sampler sampler(options, prompt, static_cast<int32_t>(logits.size()));
  return sampler.draw(logits);
}

/// Ids drawn in `count` steps from the same logits.
std::map<int32_t, int> draw_many(const SamplingOptions& options, const Logits& logits, int count) {
  Sampler sampler(options, {}, static_cast<int32_t>(logits.size()));
  std::map<int32_t, int> drawn;
  for (int i = 0; i < count; ++i) {
    Logits copy = logits;
    ++drawn[sampler.draw(copy)];
  }
  return drawn;
}

TEST(Sampler, temperature_zero_takes_the_best_and_of_equals_the_lowest) {
  EXPECT_EQ(draw_once({.temperature = 0}, {1, 5, 2}), 1);
  EXPECT_EQ(draw_once({.temperature = 0}, {1, 5, 5}), 1);
}

TEST(Sampler, ids_beyond_the_tokenizer_are_never_drawn) {
  Logits logits = {1, 2, 9};
  Sampler sampler({.temperature = 0}, {}, 2);
  EXPECT_EQ(sampler.draw(logits), 1);
}

TEST(Sampler, draws_follow_the_distribution) {
  const Logits logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  std::map<int32_t, int> drawn = draw_many({.seed = 1}, logits, 20000);
  EXPECT_NEAR(drawn[0] / 20000.0, 0.5, 0.02);
  EXPECT_NEAR(drawn[1] / 20000.0, 0.3, 0.02);
  EXPECT_NEAR(drawn[2] / 20000.0, 0.2, 0.02);
}

TEST(Sampler, temperature_sharpens) {
  const Logits logits = {std::log(0.6F), std::log(0.4F)};
  std::map<int32_t, int> drawn = draw_many({.temperature = 0.5, .seed = 1}, logits, 20000);
  EXPECT_NEAR(drawn[0] / 20000.0, 0.36 / 0.52, 0.02);
}

TEST(Sampler, top_k_keeps_the_best) {
  const std::map<int32_t, int> drawn =
      draw_many({.top_k = 2, .seed = 1}, {1, 1.2F, 1.1F, 0.9F}, 500);
  EXPECT_EQ(drawn.size(), 2U);
  EXPECT_TRUE(drawn.contains(1) && drawn.contains(2));
}

/// A bit for each id that may come.
std::vector<uint32_t> mask_of(const std::vector<int32_t>& allowed, size_t count) {
  std::vector<uint32_t> mask(count / 32 + 1, 0);
  for (const int32_t id : allowed) {
    mask[static_cast<size_t>(id / 32)] |= uint32_t{1} << (id % 32);
  }
  return mask;
}

TEST(Sampler, only_allowed_ids_are_drawn) {
  Logits logits(100);
  std::iota(logits.begin(), logits.end(), 0.0F);
  const std::vector<float> peaks = {15, 31, 47, 63, 79, 95, 99};
  const std::vector<uint32_t> mask = mask_of({3, 40}, logits.size());
  for (const double temperature : {0.0, 30.0}) {
    // More than there are runs, and than there are ids left.
    for (const int top_k : {0, 1, 5, 8, 50, 1000}) {
      Sampler sampler({.temperature = temperature, .top_k = top_k, .seed = 3}, {}, 100);
      std::map<int32_t, int> drawn;
      for (int i = 0; i < 50; ++i) {
        Logits copy = logits;
        ++drawn[sampler.draw({copy, peaks}, mask)];
      }
      EXPECT_EQ(drawn[3] + drawn[40], 50);
      EXPECT_EQ(drawn[3] > 0, temperature > 0 && top_k != 1) << top_k;
    }
  }
  Sampler sampler({.temperature = 0}, {}, 100);
  EXPECT_THROW(sampler.draw({logits, peaks}, mask_of({}, 100)), Error);
}

TEST(Sampler, a_bias_is_added) {
  EXPECT_EQ(draw_once({.temperature = 0, .logit_bias = {{0, 3.5F}}}, {2, 5, 1}), 0);
  EXPECT_EQ(draw_once({.temperature = 0, .logit_bias = {{1, -100}, {7, 9}}}, {2, 5, 1}), 0);
  EXPECT_THROW(require_valid({.logit_bias = {{0, 101}}}), Error);
}

TEST(Sampler, top_p_keeps_the_smallest_set_that_reaches_it) {
  const Logits logits = {std::log(0.5F), std::log(0.3F), std::log(0.15F), std::log(0.05F)};
  EXPECT_EQ(draw_many({.top_p = 0.49, .seed = 1}, logits, 500).size(), 1U);
  EXPECT_EQ(draw_many({.top_p = 0.75, .seed = 1}, logits, 500).size(), 2U);
  EXPECT_EQ(draw_many({.top_p = 0.9, .seed = 1}, logits, 500).size(), 3U);
}

TEST(Sampler, min_p_is_a_share_of_the_best) {
  const Logits logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  EXPECT_EQ(draw_many({.min_p = 0.5, .seed = 1}, logits, 500).size(), 2U);
}

TEST(Sampler, repetition_penalty_weakens_prompt_and_answer) {
  EXPECT_EQ(draw_once({.temperature = 0, .repetition_penalty = 2}, {3, 2}, {0}), 1);
  EXPECT_EQ(draw_once({.temperature = 0, .repetition_penalty = 2}, {-1, -1.5F}, {0}), 1);
  Sampler sampler({.temperature = 0, .repetition_penalty = 2}, {}, 2);
  Logits logits = {3, 2};
  EXPECT_EQ(sampler.draw(logits), 0);
  logits = {3, 2};
  EXPECT_EQ(sampler.draw(logits), 1);
}

TEST(Sampler, a_token_of_prompt_and_answer_is_weakened_once) {
  const std::vector<int32_t> prompt = {0};
  Sampler sampler({.temperature = 0, .repetition_penalty = 2}, prompt, 2);
  Logits logits = {8, 1};
  EXPECT_EQ(sampler.draw(logits), 0);
  logits = {8, 3};  // 8 / 2 is over 3, 8 / 4 is not
  EXPECT_EQ(sampler.draw(logits), 0);
}

TEST(Sampler, presence_and_frequency_count_the_answer_only) {
  EXPECT_EQ(draw_once({.temperature = 0, .presence_penalty = 2}, {3, 2}, {0}), 0);
  Sampler presence({.temperature = 0, .presence_penalty = 1.5}, {}, 2);
  Sampler frequency({.temperature = 0, .frequency_penalty = 0.6}, {}, 2);
  std::vector<int32_t> by_presence;
  std::vector<int32_t> by_frequency;
  for (int i = 0; i < 3; ++i) {
    Logits logits = {3, 2};
    by_presence.push_back(presence.draw(logits));
    logits = {3, 2};
    by_frequency.push_back(frequency.draw(logits));
  }
  EXPECT_EQ(by_presence, (std::vector<int32_t>{0, 1, 0}));
  EXPECT_EQ(by_frequency, (std::vector<int32_t>{0, 0, 1}));
}

TEST(Sampler, a_seed_repeats_an_answer) {
  const Logits logits(50, 0.0F);
  const auto answer = [&logits](uint64_t seed) {
    Sampler sampler({.seed = seed}, {}, 50);
    std::vector<int32_t> ids;
    for (int i = 0; i < 20; ++i) {
      Logits copy = logits;
      ids.push_back(sampler.draw(copy));
    }
    return ids;
  };
  EXPECT_EQ(answer(7), answer(7));
  EXPECT_NE(answer(7), answer(8));
}

/// Numbers that repeat, more than a run of them, the last run not whole.
Logits many_logits() {
  Logits logits;
  for (int i = 0; i < 1003; ++i) {
    logits.push_back(static_cast<float>(i * 37 % 101) / 8.0F - 14.0F);
  }
  return logits;
}

TEST(Sampler, of_equals_in_several_runs_the_lowest_wins) {
  const Logits logits = many_logits();
  const auto first = std::ranges::max_element(logits) - logits.begin();
  EXPECT_EQ(draw_once({.temperature = 0}, logits), first);
  // All ids with that number, one behind the other, as each is weakened.
  Sampler sampler({.temperature = 0, .presence_penalty = 2}, {}, 1003);
  const float largest = logits[static_cast<size_t>(first)];
  for (int32_t id = 0; id < 1003; ++id) {
    if (logits[static_cast<size_t>(id)] == largest) {
      Logits copy = logits;
      EXPECT_EQ(sampler.draw(copy), id);
    }
  }
}

TEST(Sampler, top_k_keeps_the_best_of_many_and_of_equals_the_lowest) {
  const Logits logits = many_logits();
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&logits](int32_t id) {
    return logits[static_cast<size_t>(id)];
  });
  for (const int top_k : {1, 7, 25, 70}) {  // more than there are runs, and fewer
    const std::map<int32_t, int> drawn =
        draw_many({.temperature = 50, .top_k = top_k, .seed = 1}, logits, 100 * top_k);
    std::vector<int32_t> ids;
    for (const auto& [id, count] : drawn) {
      ids.push_back(id);
    }
    std::vector<int32_t> expected(order.begin(), order.begin() + top_k);
    std::ranges::sort(expected);
    EXPECT_EQ(ids, expected) << top_k;
  }
}

TEST(Sampler, a_tokenizer_may_end_inside_a_run) {
  Logits logits(48, 0.0F);
  logits[36] = 1;
  logits[37] = std::numeric_limits<float>::infinity();  // nobody looks at it
  Sampler sampler({.temperature = 0}, {}, 37);
  EXPECT_EQ(sampler.draw(logits), 36);
}

TEST(Sampler, refuses_what_is_not_finite) {
  EXPECT_THROW(draw_once({}, {1, std::numeric_limits<float>::quiet_NaN()}), Error);
  EXPECT_THROW(draw_once({}, {1, std::numeric_limits<float>::infinity()}), Error);
}

TEST(SamplingOptions, values_out_of_range_are_refused) {
  EXPECT_NO_THROW(require_valid({}));
  EXPECT_THROW(require_valid({.temperature = -1}), Error);
  EXPECT_THROW(require_valid({.temperature = std::nan("")}), Error);
  EXPECT_THROW(require_valid({.top_k = -1}), Error);
  EXPECT_THROW(require_valid({.top_p = 0}), Error);
  EXPECT_THROW(require_valid({.top_p = 1.1}), Error);
  EXPECT_THROW(require_valid({.min_p = 2}), Error);
  EXPECT_THROW(require_valid({.repetition_penalty = 0}), Error);
  EXPECT_THROW(require_valid({.presence_penalty = 3}), Error);
  EXPECT_THROW(require_valid({.frequency_penalty = -3}), Error);
}

}  // namespace
}  // namespace whimbrel
