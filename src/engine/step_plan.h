#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace whimbrel {

/// What a scheduler has to know of a sequence.
struct SequenceState {
  uint64_t id = 0;
  int tokens = 0;   // of the prompt
  int ready = 0;    // of these, up to the first picture that no tower has seen
  int cached = 0;   // tokens in the cache, answer's included
  int answer = 0;   // tokens of the answer that were drawn; 0: the prompt is not yet read
  int guesses = 0;  // tokens that are guessed to follow the answer's last one

  bool reads_prompt() const { return cached < tokens; }
  bool waits_for_tower() const { return reads_prompt() && cached == ready; }
};

/// All that a step depends on. Sequences stand in the order of their ids.
struct StepState {
  std::vector<SequenceState> sequences = {};
  int most_rows = 512;          // of prompts
  int most_rows_again = 64;     // of answers that are read again
  int most_decode_rows = 16;    // of answers that are not read again; guesses take what is left
  bool tower_ran = false;       // in the step before
  bool in_tower = false;        // one is at work: no other begins
  uint64_t last_prefilled = 0;  // sequence whose turn came last; 0: none's
  uint64_t last_encoded = 0;
};

/// Tokens [first, end) of a sequence: of its prompt, or behind it of its answer and of what is
/// guessed to follow.
struct StepRows {
  uint64_t id = 0;
  int first = 0;
  int end = 0;

  friend bool operator==(const StepRows&, const StepRows&) = default;
};

/// One step: the tower on the next picture of one sequence, or a forward.
struct StepPlan {
  std::optional<uint64_t> tower = std::nullopt;
  std::vector<StepRows> prefill = {};  // of prompts, at most StepState::most_rows in all
  std::vector<StepRows> decode = {};  // of answers; one row, but for guesses and what is read again

  bool empty() const { return !tower && prefill.empty() && decode.empty(); }
};

/// Every answer that isn't read again gets its next token in each forward. Prompts share what rows
/// a forward has for them, beginning with the one behind the last in turn, so that a short prompt
/// does not wait for the whole of a long one. A picture is encoded between two forwards where
/// others wait for them. Answers that are read again share rows of their own, guesses what rows the
/// answers leave: those that came first before the others.
StepPlan plan_step(const StepState& state);

}  // namespace whimbrel
