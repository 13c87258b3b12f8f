#include "models/chunk.h"

#include <mlx/mlx.h>

#include <algorithm>

namespace whimbrel {

namespace {

/// True where the three axes agree and advance by one, so that an offset says it all.
bool is_text(const std::array<std::span<const int32_t>, 3>& axes) {
  for (size_t i = 0; i < axes[0].size(); ++i) {
    const int32_t expected = axes[0][0] + static_cast<int32_t>(i);
    if (axes[0][i] != expected || axes[1][i] != expected || axes[2][i] != expected) {
      return false;
    }
  }
  return true;
}

mx::array rows_of(const mx::array& features, int first, int end) {
  return mx::slice(features, {first, 0}, {end, features.shape(1)});
}

}  // namespace

Chunk prompt_chunk(const Prompt& prompt, std::span<const mx::array> features, int first, int end) {
  const auto part = [first, end](std::span<const int32_t> all) {
    return all.subspan(static_cast<size_t>(first), static_cast<size_t>(end - first));
  };
  const auto& axes = prompt.positions.axes;
  Chunk chunk{.ids = part(prompt.ids), .offset = axes[0][static_cast<size_t>(first)]};
  const std::array<std::span<const int32_t>, 3> rows = {
      part(axes[0]), part(axes[1]), part(axes[2])
  };
  if (!is_text(rows)) {
    chunk.axes = rows;
  }
  for (size_t i = 0; i < prompt.media.size(); ++i) {
    const MediaSpan& span = prompt.media[i];
    const int from = std::max(first, span.first);
    const int to = std::min(end, span.first + span.tokens);
    if (from < to) {
      chunk.media.push_back(
          {from - first, rows_of(features[i], from - span.first, to - span.first)}
      );
    }
  }
  return chunk;
}

ops::RopePlan plan_rope(const nn::Rope& rope, const Chunk& chunk) {
  return chunk.axes ? rope.plan(*chunk.axes) : rope.plan(chunk.offset);
}

mx::array embed_chunk(const ops::Ops& ops, const ops::PackedMatrix& table, const Chunk& chunk) {
  const mx::array ids(chunk.ids.begin(), {static_cast<int>(chunk.ids.size())}, mx::int32);
  mx::array x = ops.embed(table, ids);
  for (const FeatureRows& media : chunk.media) {
    const mx::Shape start = {media.first, 0};
    const mx::Shape stop = {media.first + media.features.shape(0), x.shape(1)};
    x = mx::slice_update(x, mx::astype(media.features, x.dtype()), start, stop);
  }
  return x;
}

}  // namespace whimbrel
