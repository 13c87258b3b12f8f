#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace whimbrel {

/// A token and the natural logarithm of its probability.
struct TokenLogprob {
  int32_t id = 0;
  float logprob = 0;
};

/// A model's distribution at one position, before any sampling option.
class LogProbabilities {
 public:
  /// Of logits [vocabulary], which are copied; `top` of the best are found.
  LogProbabilities(std::span<const float> logits, int top);

  TokenLogprob of(int32_t id) const;

  /// Best first; of equals the lower id first.
  const std::vector<TokenLogprob>& top() const { return top_; }

 private:
  std::vector<float> logits_;
  double log_total_ = 0;
  std::vector<TokenLogprob> top_;
};

}  // namespace whimbrel
