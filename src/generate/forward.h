#pragma once

#include <functional>
#include <vector>

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

}  // namespace whimbrel
