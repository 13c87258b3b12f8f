#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace whimbrel {

/// Guesses how a text goes on: as it did where its last three tokens stood before (Saxena, "Prompt
/// Lookup Decoding", 2023; HF prompt_lookup_num_tokens). A guess costs a row of a forward that is
/// made anyway, and a right one saves a forward.
class PromptLookup {
 public:
  /// Guesses at most so many tokens at a time, at least 1.
  explicit PromptLookup(int most) : most_(most), length_(most) {}

  /// The text goes on with these.
  void append(std::span<const int32_t> ids);

  /// What may stand behind the text, at most `room` tokens; none where its end is new.
  std::vector<int32_t> guess(int room) const;

  /// Of the last `guessed` tokens the first `right` came true: the next guess is twice as long as
  /// what was right, so that a text that repeats nothing costs one row a step.
  void learn(int guessed, int right);

 private:
  std::vector<int32_t> ids_;
  std::unordered_map<uint64_t, size_t> behind_;  // by hash of three tokens: where the last went on
  int most_;
  int length_;
};

}  // namespace whimbrel
