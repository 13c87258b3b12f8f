#pragma once

#include <mlx/array.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nn/rope.h"
#include "ops/ops.h"

namespace whimbrel::nn {

namespace mx = mlx::core;

/// What a vision tower makes of one picture or video: a row for each of its tokens.
struct Features {
  mx::array rows;                    // [tokens, hidden_size], in place of token embeddings
  std::vector<mx::array> deepstack;  // the same shape; the i-th is added behind decoder layer i

  /// All of them, for evaluation.
  std::vector<mx::array> arrays() const;

  /// Tokens [first, end).
  Features slice(int first, int end) const;
};

/// Rows of a chunk that stand for media, and what replaces their embeddings.
struct FeatureRows {
  int first;  // row in the chunk
  Features features;
};

/// Consecutive tokens of one sequence, the input of one forward. Refers to the prompt's memory.
struct Chunk {
  std::span<const int32_t> ids;
  /// Position of the first token; the others follow one by one unless `axes` says otherwise.
  int offset = 0;
  /// Only where the tokens' three positions differ.
  std::optional<std::array<std::span<const int32_t>, 3>> axes = std::nullopt;
  std::vector<FeatureRows> media = {};
  bool prefill = false;  // of a prompt, not of an answer (ops::Activations)

  int rows() const { return static_cast<int>(ids.size()); }
};

/// Rows of the chunks of prompts, which have to stand in front of the others (std::logic_error).
int prefill_rows(std::span<const Chunk> chunks);

/// The chunk's rotation, made once for all layers.
ops::RopePlan plan_rope(const ops::Ops& ops, const Rope& rope, const Chunk& chunk);

/// Token embeddings of the chunks, one behind the other, with media rows put in:
/// [rows, hidden_size].
mx::array embed_chunks(
    const ops::Ops& ops, const ops::PackedMatrix& table, std::span<const Chunk> chunks
);

/// The residual stream behind decoder layer `layer` with the chunks' deepstack rows of that layer
/// added to their tokens (HF _deepstack_process).
mx::array add_deepstack(const mx::array& x, std::span<const Chunk> chunks, int layer);

}  // namespace whimbrel::nn
