#include "generate/logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace whimbrel {

LogProbabilities::LogProbabilities(std::span<const float> logits, int top)
    : logits_(logits.begin(), logits.end()) {
  const double largest = *std::ranges::max_element(logits_);
  double total = 0;
  for (const float logit : logits_) {
    total += std::exp(logit - largest);
  }
  log_total_ = largest + std::log(total);
  std::vector<int32_t> ids(logits_.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto best = ids.begin() + std::min<ptrdiff_t>(top, std::ssize(ids));
  std::ranges::partial_sort(ids, best, [this](int32_t a, int32_t b) {
    const float left = logits_[static_cast<size_t>(a)];
    const float right = logits_[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  });
  for (auto id = ids.begin(); id != best; ++id) {
    top_.push_back(of(*id));
  }
}

TokenLogprob LogProbabilities::of(int32_t id) const {
  return {id, static_cast<float>(logits_[static_cast<size_t>(id)] - log_total_)};
}

}  // namespace whimbrel
