#include "generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "ops/ops.h"

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

constexpr size_t kRun = ops::kPeakRun;

template <typename T>
std::span<T> run_of(std::span<T> logits, size_t run) {
  return logits.subspan(run * kRun, std::min(kRun, logits.size() - run * kRun));
}

/// As ops::Ops::peaks.
float peak_of(std::span<const float> run) {
  const bool finite = std::ranges::all_of(run, [](float x) { return std::isfinite(x); });
  return finite ? *std::ranges::max_element(run) : std::numeric_limits<float>::quiet_NaN();
}

/// What the `top_k` best logits are at least: so many peaks are as large.
float least_of_best(std::span<const float> peaks, int top_k) {
  if (top_k == 0 || static_cast<size_t>(top_k) > peaks.size()) {
    return std::numeric_limits<float>::lowest();
  }
  std::vector<float> sorted(peaks.begin(), peaks.end());
  const auto last = sorted.begin() + (top_k - 1);
  std::nth_element(sorted.begin(), last, sorted.end(), std::greater{});
  return *last;
}

/// Of all logits that are at least `least`.
std::vector<Candidate> softmax_weights(
    std::span<const float> logits, std::span<const float> peaks, float least, double temperature
) {
  const float largest = *std::ranges::max_element(peaks);
  const auto runs = std::ranges::count_if(peaks, [least](float peak) { return peak >= least; });
  std::vector<Candidate> candidates;
  candidates.reserve(static_cast<size_t>(runs) * kRun);
  for (size_t run = 0; run < peaks.size(); ++run) {
    if (peaks[run] < least) {
      continue;
    }
    const size_t end = std::min(logits.size(), (run + 1) * kRun);
    for (size_t id = run * kRun; id < end; ++id) {
      if (logits[id] >= least) {
        const double weight = std::exp((static_cast<double>(logits[id]) - largest) / temperature);
        candidates.push_back({weight, static_cast<int32_t>(id)});
      }
    }
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

/// The best first. A grammar may leave fewer than are to be kept.
void keep_top_k(std::vector<Candidate>& candidates, int top_k) {
  if (candidates.size() <= static_cast<size_t>(top_k)) {
    return;
  }
  const auto end = candidates.begin() + top_k;
  std::partial_sort(candidates.begin(), end, candidates.end(), std::greater{});
  candidates.erase(end, candidates.end());
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
  for (const auto& [id, bias] : options.logit_bias) {
    require_range("logit_bias", bias, -100, 100);
  }
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
  std::vector<float> peaks;
  for (size_t run = 0; run * kRun < logits.size(); ++run) {
    peaks.push_back(peak_of(run_of(logits, run)));
  }
  return draw({logits, peaks});
}

int32_t Sampler::draw(const RankedLogits& ranked) {
  return draw_from(take_logits(ranked));
}

int32_t Sampler::draw(const RankedLogits& ranked, std::span<const uint32_t> allowed) {
  const std::span<float> logits = take_logits(ranked);
  forbid_others(logits, allowed);
  return draw_from(logits);
}

/// The logits that may be drawn from, and their peaks.
std::span<float> Sampler::take_logits(const RankedLogits& ranked) {
  const size_t count = std::min(ranked.logits.size(), static_cast<size_t>(vocabulary_));
  const std::span<float> logits = ranked.logits.first(count);
  const size_t whole_runs = count / kRun;
  peaks_.assign(ranked.peaks.begin(), ranked.peaks.begin() + static_cast<ptrdiff_t>(whole_runs));
  if (count % kRun != 0) {  // the tokenizer's last id may end a run early
    peaks_.push_back(peak_of(run_of(logits, whole_runs)));
  }
  if (!std::ranges::all_of(peaks_, [](float x) { return std::isfinite(x); })) {
    throw Error(
        Fault::model,
        "logits",
        "got numbers that are not finite; the weights may be damaged or overflow in 16 bits: run "
        "whimbrel verify -m DIR"
    );
  }
  return logits;
}

void Sampler::forbid_others(std::span<float> logits, std::span<const uint32_t> allowed) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (size_t id = 0; id < logits.size(); ++id) {
    const bool may_come = id / 32 < allowed.size() && (allowed[id / 32] >> (id % 32) & 1) != 0;
    logits[id] = may_come ? logits[id] : kNever;
  }
  for (size_t run = 0; run < peaks_.size(); ++run) {
    peaks_[run] = *std::ranges::max_element(run_of(logits, run));
  }
  if (*std::ranges::max_element(peaks_) == kNever) {
    throw Error(
        Fault::model, "grammar", "got no token that may come next, expected one; change the grammar"
    );
  }
}

int32_t Sampler::draw_from(std::span<float> logits) {
  penalise(logits);
  const int32_t id = options_.temperature == 0 ? best(logits) : sample(logits);
  ++answer_counts_[id];
  return id;
}

void Sampler::penalise(std::span<float> logits) {
  const auto penalty = static_cast<float>(options_.repetition_penalty);
  const auto change = [&](int32_t id, auto changed) {
    const auto place = static_cast<size_t>(id);
    if (place < logits.size()) {
      logits[place] = changed(logits[place]);
      peaks_[place / kRun] = *std::ranges::max_element(run_of(logits, place / kRun));
    }
  };
  for (const auto& [id, bias] : options_.logit_bias) {
    change(id, [bias = bias](float x) { return x + bias; });
  }
  const auto repeat = [&](int32_t id) {
    change(id, [penalty](float x) { return x > 0 ? x / penalty : x * penalty; });
  };
  if (penalty != 1.0F) {
    std::ranges::for_each(prompt_ids_, repeat);
  }
  for (const auto& [id, count] : answer_counts_) {
    if (penalty != 1.0F && !std::ranges::binary_search(prompt_ids_, id)) {
      repeat(id);
    }
    const double cost = options_.presence_penalty + options_.frequency_penalty * count;
    change(id, [cost](float x) { return x - static_cast<float>(cost); });
  }
}

int32_t Sampler::best(std::span<const float> logits) const {
  const auto peak = std::ranges::max_element(peaks_);
  const auto first = static_cast<size_t>(peak - peaks_.begin()) * kRun;
  const auto run = logits.subspan(first);
  return static_cast<int32_t>(first) +
         static_cast<int32_t>(std::ranges::find(run, *peak) - run.begin());
}

int32_t Sampler::sample(std::span<const float> logits) {
  const int top_k = static_cast<size_t>(options_.top_k) < logits.size() ? options_.top_k : 0;
  std::vector<Candidate> candidates =
      softmax_weights(logits, peaks_, least_of_best(peaks_, top_k), options_.temperature);
  if (top_k > 0) {
    keep_top_k(candidates, top_k);
  }
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
