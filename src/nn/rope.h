#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/ops.h"

namespace whimbrel::nn {

/// Which axis (0 time, 1 height, 2 width) each rotary frequency follows, [head_dim / 2].
/// Chunked: Qwen2-VL and Qwen2.5-VL, sections one behind the other.
std::vector<int> chunked_axes(std::span<const int> mrope_section);

/// Interleaved: Qwen3-VL, time, height, width in turn until a section's frequencies are used up;
/// the rest follows time (HF apply_interleaved_mrope).
std::vector<int> interleaved_axes(std::span<const int> mrope_section);

/// 1 / theta^(2 i / dims) for i < dims / 2, computed in float64 and rounded once, so that every
/// path rotates by the same angles.
std::vector<float> inverse_frequencies(double theta, int dims);

/// Rotary embedding of a text decoder.
class Rope {
 public:
  Rope(double theta, int head_dim, std::vector<int> axes);

  /// Rows at consecutive positions from `offset` on: text.
  ops::RopePlan plan(int offset) const;

  /// The same with tables for `rows` rows.
  ops::RopePlan plan(int offset, int rows) const;

  /// Rows at arbitrary positions, one span of equal length an axis: a chunk that holds media.
  ops::RopePlan plan(std::span<const std::span<const int32_t>, 3> positions) const;

 private:
  std::vector<float> frequencies_;
  std::vector<int> axes_;
  mlx::core::array periods_;
};

/// Rotation of a vision tower's patches by row and column, both halves of the angles alike
/// (HF VisionRotaryEmbedding): [patches, head_dim / 2] for patches at (rows[i], columns[i]).
ops::RopeTables vision_rope(
    std::span<const int32_t> rows, std::span<const int32_t> columns, int head_dim
);

}  // namespace whimbrel::nn
