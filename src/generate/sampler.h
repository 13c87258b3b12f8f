#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace whimbrel {

/// How the next token is drawn. The defaults change nothing: a draw from the model's distribution.
struct SamplingOptions {
  double temperature = 1.0;         // 0: always the most likely token
  int top_k = 0;                    // keep the k most likely; 0: all
  double top_p = 1.0;               // keep the most likely up to this much probability
  double min_p = 0.0;               // keep what has this share of the best one's probability
  double repetition_penalty = 1.0;  // for tokens of prompt and answer (CTRL paper, HF)
  double presence_penalty = 0.0;    // once for each token of the answer (OpenAI)
  double frequency_penalty = 0.0;   // for each time a token stands in the answer (OpenAI)
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // added to the logits of these ids
  std::optional<uint64_t> seed = std::nullopt;
};

/// Throws Error(Fault::usage) that names the option and its range.
void require_valid(const SamplingOptions& options);

/// One row's logits, which a sampler may overwrite, and their peaks (ops::Ops::peaks).
struct RankedLogits {
  std::span<float> logits;
  std::span<const float> peaks;
};

/// Draws the tokens of one sequence: penalties, temperature, top-k, top-p, min-p, in transformers'
/// order. Owns its random state, so that neighbours can't change an answer.
class Sampler {
 public:
  /// `vocabulary` is the tokenizer's size: ids from there on are never drawn.
  Sampler(const SamplingOptions& options, std::span<const int32_t> prompt_ids, int32_t vocabulary);

  /// The next id; counts it as part of the answer. Among equals the lowest id wins. Walks through
  /// the logits only where options ask for all of them. Throws Error(Fault::model) where logits are
  /// not finite.
  int32_t draw(const RankedLogits& ranked);

  /// The same of the ids alone whose bit is set: id % 32 of word id / 32. Throws
  /// Error(Fault::model) where none is.
  int32_t draw(const RankedLogits& ranked, std::span<const uint32_t> allowed);

  /// The same for logits [vocab_size] alone.
  int32_t draw(std::span<float> logits);

 private:
  std::span<float> take_logits(const RankedLogits& ranked);
  int32_t draw_from(std::span<float> logits);
  void forbid_others(std::span<float> logits, std::span<const uint32_t> allowed);
  void penalise(std::span<float> logits);
  int32_t best(std::span<const float> logits) const;
  int32_t sample(std::span<const float> logits);

  SamplingOptions options_;
  int32_t vocabulary_;
  std::vector<int32_t> prompt_ids_;  // each once
  std::unordered_map<int32_t, int> answer_counts_;
  std::mt19937_64 random_;
  std::vector<float> peaks_;  // of the logits that are drawn from
};

}  // namespace whimbrel
