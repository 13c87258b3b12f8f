#include "generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"

namespace whimbrel {

namespace {

/// A token that may be drawn. `weight` is its probability up to a common factor.
struct Candidate {
  double weight;
  int32_t id;

  /// Less likely first; of equals the higher id first, so that the lowest id counts as the best.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight < b.weight : a.id > b.id;
  }
  friend bool operator>(const Candidate& a, const Candidate& b) { return b < a; }
};

std::vector<Candidate> softmax_weights(std::span<const float> logits, double temperature) {
  const float largest = *std::ranges::max_element(logits);
  std::vector<Candidate> candidates;
  candidates.reserve(logits.size());
  for (size_t id = 0; id < logits.size(); ++id) {
    const double weight = std::exp((static_cast<double>(logits[id]) - largest) / temperature);
    candidates.push_back({weight, static_cast<int32_t>(id)});
  }
  return candidates;
}

double total_weight(const std::vector<Candidate>& candidates) {
  double total = 0;
  for (const Candidate& candidate : candidates) {
    total += candidate.weight;
  }
  return total;
}

void keep_top_k(std::vector<Candidate>& candidates, int top_k) {
  if (top_k == 0 || static_cast<size_t>(top_k) >= candidates.size()) {
    return;
  }
  std::nth_element(
      candidates.begin(), candidates.begin() + top_k, candidates.end(), std::greater{}
  );
  candidates.resize(static_cast<size_t>(top_k));
}

/// A heap gives up the best ones in order, so that a large vocabulary is never sorted whole.
void keep_top_p(std::vector<Candidate>& candidates, double top_p) {
  if (top_p >= 1.0) {
    return;
  }
  const double wanted = top_p * total_weight(candidates);
  std::make_heap(candidates.begin(), candidates.end());
  std::vector<Candidate> kept;
  for (double mass = 0; kept.empty() || (mass < wanted && !candidates.empty());) {
    std::pop_heap(candidates.begin(), candidates.end());
    kept.push_back(candidates.back());
    candidates.pop_back();
    mass += kept.back().weight;
  }
  candidates = std::move(kept);
}

void keep_min_p(std::vector<Candidate>& candidates, double min_p) {
  const double least = min_p * std::max_element(candidates.begin(), candidates.end())->weight;
  std::erase_if(candidates, [least](const Candidate& c) { return c.weight < least; });
}

void require_range(std::string_view name, double value, double min, double max) {
  if (!(value >= min && value <= max)) {
    throw Error(Fault::usage, name, "got {}, expected a number from {} to {}", value, min, max);
  }
}

}  // namespace

void require_valid(const SamplingOptions& options) {
  require_range("temperature", options.temperature, 0, 100);
  require_range("top_k", options.top_k, 0, 1e9);
  require_range("top_p", options.top_p, 1e-9, 1);
  require_range("min_p", options.min_p, 0, 1);
  require_range("repetition_penalty", options.repetition_penalty, 0.01, 100);
  require_range("presence_penalty", options.presence_penalty, -2, 2);
  require_range("frequency_penalty", options.frequency_penalty, -2, 2);
}

Sampler::Sampler(
    const SamplingOptions& options, std::span<const int32_t> prompt_ids, int32_t vocabulary
)
    : options_(options),
      vocabulary_(vocabulary),
      random_(options.seed ? *options.seed : std::random_device{}()) {
  const std::set<int32_t> unique(prompt_ids.begin(), prompt_ids.end());
  prompt_ids_.assign(unique.begin(), unique.end());
}

int32_t Sampler::draw(std::span<float> logits) {
  logits = logits.first(std::min(logits.size(), static_cast<size_t>(vocabulary_)));
  if (!std::ranges::all_of(logits, [](float x) { return std::isfinite(x); })) {
    throw Error(
        Fault::model,
        "logits",
        "got numbers that are not finite; the weights may be damaged or overflow in 16 bits: run "
        "whimbrel verify -m DIR"
    );
  }
  penalise(logits);
  const int32_t id = options_.temperature == 0
                         ? static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin())
                         : sample(logits);
  ++answer_counts_[id];
  return id;
}

void Sampler::penalise(std::span<float> logits) const {
  const auto penalty = static_cast<float>(options_.repetition_penalty);
  const auto repeat = [&](int32_t id) {
    if (static_cast<size_t>(id) < logits.size()) {
      float& logit = logits[static_cast<size_t>(id)];
      logit = logit > 0 ? logit / penalty : logit * penalty;
    }
  };
  if (penalty != 1.0F) {
    std::ranges::for_each(prompt_ids_, repeat);
  }
  for (const auto& [id, count] : answer_counts_) {
    if (penalty != 1.0F && !std::ranges::binary_search(prompt_ids_, id)) {
      repeat(id);
    }
    logits[static_cast<size_t>(id)] -=
        static_cast<float>(options_.presence_penalty + options_.frequency_penalty * count);
  }
}

int32_t Sampler::sample(std::span<const float> logits) {
  std::vector<Candidate> candidates = softmax_weights(logits, options_.temperature);
  keep_top_k(candidates, options_.top_k);
  keep_top_p(candidates, options_.top_p);
  keep_min_p(candidates, options_.min_p);
  // The standard leaves uniform_real_distribution to the library; 53 bits of the engine do not.
  const double uniform = static_cast<double>(random_() >> 11) * 0x1.0p-53;
  double rest = uniform * total_weight(candidates);
  for (const Candidate& candidate : candidates) {
    rest -= candidate.weight;
    if (rest < 0) {
      return candidate.id;
    }
  }
  return candidates.back().id;
}

}  // namespace whimbrel
