#pragma once

#include <mlx/array.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/frontend.h"
#include "engine/prepare.h"
#include "models/prompt_chunk.h"

namespace whimbrel::test {

/// A checkpoint with its frontend, loaded.
struct LoadedModel {
  explicit LoadedModel(const std::filesystem::path& folder, std::string_view ops = "");
  LoadedModel(const std::filesystem::path& folder, std::unique_ptr<const ops::Ops> ops);

  const Model& model() const { return engine.model(); }

  /// One user turn: pictures (paths below the project's folder), then the text.
  Prompt prompt(const std::vector<std::string>& pictures, const std::string& text) const;

  /// The tower's output of each of a prompt's media.
  std::vector<nn::Features> encode(const Prompt& prompt) const;

  Frontend frontend;
  Checkpoint checkpoint;
  Engine engine;
};

/// Runs tokens [first, end) of a prompt in chunks of `size` behind what is in the cache -> logits
/// of each, float32 [tokens, vocab_size].
mlx::core::array run_chunks(
    const Model& model,
    const Prompt& prompt,
    std::span<const nn::Features> features,
    nn::KVCache& cache,
    int first,
    int end,
    int size
);

/// The prompt with more tokens of text behind it.
Prompt followed_by(const Prompt& prompt, const std::vector<int32_t>& ids);

/// Largest |a - b|.
float largest_difference(const mlx::core::array& a, const mlx::core::array& b);

}  // namespace whimbrel::test
