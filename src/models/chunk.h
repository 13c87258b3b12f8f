#pragma once

#include <mlx/array.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/prompt.h"
#include "nn/rope.h"
#include "ops/ops.h"

namespace whimbrel {

namespace mx = mlx::core;

/// Rows of a chunk that stand for media, and what replaces their embeddings.
struct FeatureRows {
  int first;           // row in the chunk
  mx::array features;  // [rows, hidden_size]
};

/// Consecutive tokens of one sequence, the input of one forward. Refers to the prompt's memory.
struct Chunk {
  std::span<const int32_t> ids;
  /// Position of the first token; the others follow one by one unless `axes` says otherwise.
  int offset = 0;
  /// Only where the tokens' three positions differ.
  std::optional<std::array<std::span<const int32_t>, 3>> axes = std::nullopt;
  std::vector<FeatureRows> media = {};
};

/// Tokens [first, end) of a prompt. `features` holds the tower's output of each of its media; a
/// chunk that cuts a picture takes the rows that lie inside it.
Chunk prompt_chunk(const Prompt& prompt, std::span<const mx::array> features, int first, int end);

/// The chunk's rotation, made once for all layers.
ops::RopePlan plan_rope(const nn::Rope& rope, const Chunk& chunk);

/// Token embeddings of the chunk with media rows put in: [rows, hidden_size].
mx::array embed_chunk(const ops::Ops& ops, const ops::PackedMatrix& table, const Chunk& chunk);

}  // namespace whimbrel
