#include "generate/prompt_lookup.h"

#include <algorithm>

namespace whimbrel {

namespace {

/// Tokens that have to be the same: two are found everywhere, four too seldom.
constexpr size_t kGram = 3;

/// Of the tokens in front of `end`. Ids have 21 bits at most in any vocabulary; where they had
/// more, a clash would cost a wrong guess and nothing else.
uint64_t gram(std::span<const int32_t> ids, size_t end) {
  uint64_t hash = 0;
  for (const int32_t id : ids.subspan(end - kGram, kGram)) {
    hash = hash << 21 ^ static_cast<uint32_t>(id);
  }
  return hash;
}

}  // namespace

void PromptLookup::append(std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    if (ids_.size() >= kGram) {
      behind_[gram(ids_, ids_.size())] = ids_.size();
    }
    ids_.push_back(id);
  }
}

std::vector<int32_t> PromptLookup::guess(int room) const {
  const int tokens = std::min(length_, room);
  if (ids_.size() < kGram || tokens < 1) {
    return {};
  }
  const auto found = behind_.find(gram(ids_, ids_.size()));
  if (found == behind_.end()) {
    return {};
  }
  const size_t period = ids_.size() - found->second;
  std::vector<int32_t> guess;
  for (size_t i = 0; i < static_cast<size_t>(tokens); ++i) {
    // Where the text repeats itself right here, the guess goes on with itself.
    guess.push_back(i < period ? ids_[found->second + i] : guess[i - period]);
  }
  return guess;
}

void PromptLookup::learn(int guessed, int right) {
  if (guessed > 0) {
    length_ = std::clamp(2 * right, 1, most_);
  }
}

}  // namespace whimbrel
