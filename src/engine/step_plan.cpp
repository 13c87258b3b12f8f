#include "engine/step_plan.h"

#include <algorithm>

namespace whimbrel {

namespace {

/// Sequences that `wanted` holds for, the one behind `last` first.
template <typename Wanted>
std::vector<const SequenceState*> in_turn(
    const std::vector<SequenceState>& sequences, uint64_t last, const Wanted& wanted
) {
  std::vector<const SequenceState*> chosen;
  for (const SequenceState& sequence : sequences) {
    if (wanted(sequence)) {
      chosen.push_back(&sequence);
    }
  }
  const auto next =
      std::ranges::find_if(chosen, [last](const SequenceState* s) { return s->id > last; });
  std::rotate(chosen.begin(), next, chosen.end());
  return chosen;
}

bool decodes(const SequenceState& sequence) {
  return !sequence.reads_prompt() && sequence.answer > 0;
}

bool can_read(const SequenceState& sequence) {
  return sequence.reads_prompt() && !sequence.waits_for_tower();
}

std::optional<uint64_t> next_for_tower(const StepState& state) {
  const auto goes_on = [](const SequenceState& s) { return decodes(s) || can_read(s); };
  if (state.in_tower) {
    return std::nullopt;
  }
  if (state.tower_ran && std::ranges::any_of(state.sequences, goes_on)) {
    return std::nullopt;
  }
  const auto waiting = in_turn(state.sequences, state.last_encoded, [](const SequenceState& s) {
    return s.waits_for_tower();
  });
  return waiting.empty() ? std::nullopt : std::optional(waiting.front()->id);
}

std::vector<StepRows> share_rows(const StepState& state) {
  std::vector<StepRows> rows;
  int left = state.most_rows;
  for (const SequenceState* s : in_turn(state.sequences, state.last_prefilled, can_read)) {
    if (left == 0) {
      break;
    }
    const int end = std::min(s->ready, s->cached + left);
    rows.push_back({s->id, s->cached, end});
    left -= end - s->cached;
  }
  return rows;
}

std::vector<StepRows> answer_rows(const StepState& state) {
  const auto answers = static_cast<int>(std::ranges::count_if(state.sequences, decodes));
  int guesses_left = std::max(0, state.most_decode_rows - answers);
  int again_left = state.most_rows_again;
  std::vector<StepRows> rows;
  for (const SequenceState& s : state.sequences) {
    const int unread = s.tokens + s.answer - s.cached;
    if (!decodes(s) || (unread > 1 && again_left == 0)) {
      continue;
    }
    if (unread == 1) {
      const int guesses = std::min(s.guesses, guesses_left);
      guesses_left -= guesses;
      rows.push_back({s.id, s.cached, s.cached + 1 + guesses});
    } else {
      const int again = std::min(unread, again_left);
      again_left -= again;
      rows.push_back({s.id, s.cached, s.cached + again});
    }
  }
  return rows;
}

}  // namespace

StepPlan plan_step(const StepState& state) {
  StepPlan plan;
  plan.tower = next_for_tower(state);
  if (plan.tower) {
    return plan;
  }
  plan.prefill = share_rows(state);
  plan.decode = answer_rows(state);
  return plan;
}

}  // namespace whimbrel
