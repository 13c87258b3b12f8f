#pragma once

#include <functional>
#include <vector>

#include "generate/sampler.h"
#include "models/model.h"
#include "models/prompt.h"

namespace whimbrel {

/// The vision tower's output of each of the prompt's first `count` media, evaluated one by one.
/// `before_each` is called before each of them.
std::vector<nn::Features> encode_media(
    const Model& model, const Prompt& prompt, size_t count, const std::function<void()>& before_each
);

/// Logits of hidden [rows, hidden_size] -> [rows * vocab_size], row by row, evaluated.
std::vector<float> evaluated_logits(const Model& model, const mx::array& hidden);

/// Logits of some rows, evaluated, as samplers take them.
class NextLogits {
 public:
  /// Of hidden [rows, hidden_size].
  NextLogits(const Model& model, const mx::array& hidden);

  /// Of one row. A sampler overwrites them.
  RankedLogits row(int index);

 private:
  mx::array logits_;  // [rows, vocab_size] float32
  mx::array peaks_;   // [rows, runs] (ops::Ops::peaks)
};

}  // namespace whimbrel
