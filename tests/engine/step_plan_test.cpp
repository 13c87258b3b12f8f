#include "engine/step_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace whimbrel {
namespace {

SequenceState reading(uint64_t id, int tokens, int cached = 0) {
  return {.id = id, .tokens = tokens, .ready = tokens, .cached = cached};
}

SequenceState answering(uint64_t id, int tokens, int answer) {
  return {
      .id = id, .tokens = tokens, .ready = tokens, .cached = tokens + answer - 1, .answer = answer
  };
}

TEST(StepPlan, nothing_to_do) {
  EXPECT_TRUE(plan_step({}).empty());
}

TEST(StepPlan, prompts_and_answers_share_a_forward) {
  const StepPlan plan = plan_step({.sequences = {answering(1, 9, 4), reading(2, 30)}});
  EXPECT_FALSE(plan.tower);
  EXPECT_EQ(plan.prefill, (std::vector<StepRows>{{2, 0, 30}}));
  EXPECT_EQ(plan.decode, (std::vector<StepRows>{{1, 12, 13}}));
}

TEST(StepPlan, prompts_share_the_rows_of_a_step) {
  const StepPlan plan = plan_step(
      {.sequences = {reading(1, 900, 100), reading(2, 40), reading(3, 40)}, .most_rows = 512}
  );
  EXPECT_EQ(plan.prefill, (std::vector<StepRows>{{1, 100, 612}}));
  const StepPlan next = plan_step(
      {.sequences = {reading(1, 900, 612), reading(2, 40), reading(3, 40)},
       .most_rows = 512,
       .last_prefilled = 1}
  );
  EXPECT_EQ(next.prefill, (std::vector<StepRows>{{2, 0, 40}, {3, 0, 40}, {1, 612, 900}}));
}

TEST(StepPlan, a_prompt_is_read_up_to_a_picture_that_no_tower_saw) {
  SequenceState sequence = reading(1, 100);
  sequence.ready = 20;
  EXPECT_EQ(plan_step({.sequences = {sequence}}).prefill, (std::vector<StepRows>{{1, 0, 20}}));
  sequence.cached = 20;
  const StepPlan plan = plan_step({.sequences = {sequence}});
  EXPECT_EQ(plan.tower, 1U);
  EXPECT_TRUE(plan.prefill.empty() && plan.decode.empty());
}

TEST(StepPlan, answers_go_on_between_two_towers) {
  SequenceState sequence = reading(1, 100);
  sequence.ready = 0;
  StepState state{.sequences = {sequence, answering(2, 5, 1)}};
  EXPECT_EQ(plan_step(state).tower, 1U);
  state.tower_ran = true;
  EXPECT_EQ(plan_step(state).tower, std::nullopt);
  EXPECT_EQ(plan_step(state).decode, (std::vector<StepRows>{{2, 5, 6}}));
  state.sequences.pop_back();
  EXPECT_EQ(plan_step(state).tower, 1U) << "nobody waits";
}

TEST(StepPlan, pictures_are_encoded_in_turn) {
  SequenceState first = reading(1, 100);
  first.ready = 0;
  SequenceState second = first;
  second.id = 2;
  StepState state{.sequences = {first, second}};
  EXPECT_EQ(plan_step(state).tower, 1U);
  state.last_encoded = 1;
  EXPECT_EQ(plan_step(state).tower, 2U);
  state.last_encoded = 2;
  EXPECT_EQ(plan_step(state).tower, 1U);
}

TEST(StepPlan, answers_that_lost_their_caches_are_read_again) {
  SequenceState first = answering(1, 10, 100);
  first.cached = 60;
  SequenceState second = answering(2, 20, 100);
  second.cached = 20;
  StepState state{.sequences = {first, answering(3, 5, 9), second}, .most_rows_again = 64};
  EXPECT_EQ(
      plan_step(state).decode, (std::vector<StepRows>{{1, 60, 110}, {3, 13, 14}, {2, 20, 34}})
  ) << "they share the rows, and hold nobody up";
  state.most_rows_again = 50;
  EXPECT_EQ(plan_step(state).decode, (std::vector<StepRows>{{1, 60, 110}, {3, 13, 14}}));
}

TEST(StepPlan, guesses_take_the_rows_that_answers_leave) {
  SequenceState first = answering(1, 10, 5);
  first.guesses = 4;
  SequenceState second = answering(2, 20, 1);
  second.guesses = 4;
  StepState state{.sequences = {first, second}, .most_decode_rows = 8};
  EXPECT_EQ(plan_step(state).decode, (std::vector<StepRows>{{1, 14, 19}, {2, 20, 23}}));
  state.most_decode_rows = 1;
  EXPECT_EQ(plan_step(state).decode, (std::vector<StepRows>{{1, 14, 15}, {2, 20, 21}}));
}

TEST(StepPlan, nothing_is_guessed_behind_what_is_read_again) {
  SequenceState sequence = answering(1, 10, 7);
  sequence.guesses = 4;
  sequence.cached = 12;
  EXPECT_EQ(plan_step({.sequences = {sequence}}).decode, (std::vector<StepRows>{{1, 12, 17}}));
}

/// A sequence of random length, with pictures, that is taken through steps as the engine does.
struct Simulated {
  SequenceState state;
  std::vector<std::pair<int, int>> pictures;  // first token and end of those not encoded
  int answer = 0;                             // tokens that it will have
  int waited = 0;                             // steps without progress

  void settle() {
    std::erase_if(pictures, [this](const auto& p) { return p.second <= state.cached; });
    state.ready = pictures.empty() ? state.tokens : std::max(state.cached, pictures.front().first);
  }
  bool done() const { return state.answer == answer; }
};

/// Random arrivals: each step is possible, nobody starves, all come to their end.
TEST(StepPlan, random_arrivals_all_come_to_their_end) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto up_to = [&random](int most) { return static_cast<int>(random() % most) + 1; };
    StepState state{.most_rows = up_to(64)};
    std::map<uint64_t, Simulated> running;
    uint64_t next = 1;
    int arrivals = 30;
    for (int step = 0; arrivals > 0 || !running.empty(); ++step) {
      ASSERT_LT(step, 20000) << "seed " << seed;
      if (arrivals > 0 && (running.empty() || (running.size() < 12 && random() % 3 == 0))) {
        Simulated s{.state = reading(next, up_to(300)), .pictures = {}, .answer = up_to(20)};
        if (random() % 2 == 0 && s.state.tokens > 8) {
          const int first = up_to(s.state.tokens / 2) - 1;
          s.pictures.push_back({first, first + up_to(s.state.tokens - first)});
        }
        s.settle();
        running[next++] = s;
        --arrivals;
      }
      state.sequences.clear();
      for (const auto& [id, s] : running) {
        state.sequences.push_back(s.state);
      }
      const StepPlan plan = plan_step(state);
      ASSERT_FALSE(plan.empty()) << "seed " << seed;
      std::map<uint64_t, int> moved;
      int prompt_rows = 0;
      if (plan.tower) {
        ASSERT_TRUE(plan.prefill.empty() && plan.decode.empty());
        Simulated& s = running.at(*plan.tower);
        ASSERT_FALSE(s.pictures.empty());
        s.pictures.erase(s.pictures.begin());
        state.last_encoded = *plan.tower;
        ++moved[*plan.tower];
      }
      for (const StepRows& rows : plan.prefill) {
        Simulated& s = running.at(rows.id);
        ASSERT_EQ(rows.first, s.state.cached);
        ASSERT_GT(rows.end, rows.first);
        ASSERT_LE(rows.end, s.state.ready);
        prompt_rows += rows.end - rows.first;
        s.state.cached = rows.end;
        s.state.answer = rows.end == s.state.tokens ? 1 : 0;
        state.last_prefilled = rows.id;
        ASSERT_EQ(++moved[rows.id], 1);
      }
      ASSERT_LE(prompt_rows, state.most_rows);
      for (const StepRows& rows : plan.decode) {
        Simulated& s = running.at(rows.id);
        ASSERT_EQ(rows.first, s.state.tokens + s.state.answer - 1);
        ASSERT_EQ(rows.end, rows.first + 1);
        s.state.cached = rows.end;
        ++s.state.answer;
        ASSERT_EQ(++moved[rows.id], 1);
      }
      for (auto& [id, s] : running) {
        s.waited = moved.contains(id) ? 0 : s.waited + 1;
        // Every other sequence may come first once, each with a forward between two towers.
        ASSERT_LE(s.waited, 2 * 12 + 2) << "seed " << seed << ", sequence " << id;
        if (!plan.tower && s.state.answer > 0) {
          ASSERT_TRUE(moved.contains(id)) << "an answer waited for a forward";
        }
        s.settle();
      }
      state.tower_ran = plan.tower.has_value();
      std::erase_if(running, [](const auto& entry) { return entry.second.done(); });
    }
  }
}

}  // namespace
}  // namespace whimbrel
