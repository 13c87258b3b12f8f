#include "models/prompt_chunk.h"

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

}  // namespace

nn::Chunk prompt_chunk(
    const Prompt& prompt, std::span<const nn::Features> features, int first, int end
) {
  const auto part = [first, end](std::span<const int32_t> all) {
    return all.subspan(static_cast<size_t>(first), static_cast<size_t>(end - first));
  };
  const auto& axes = prompt.positions.axes;
  nn::Chunk chunk{
      .ids = part(prompt.ids), .offset = axes[0][static_cast<size_t>(first)], .prefill = true
  };
  const std::array<std::span<const int32_t>, 3> rows = {
      part(axes[0]), part(axes[1]), part(axes[2])
  };
  if (!is_text(rows)) {
    chunk.axes = rows;
  }
  for (size_t i = 0; i < prompt.media.size(); ++i) {
    int row = 0;
    for (const TokenRun& run : prompt.media[i].runs) {
      const int from = std::max(first, run.first);
      const int to = std::min(end, run.first + run.tokens);
      if (from < to) {
        const int skipped = row - run.first;
        chunk.media.push_back({from - first, features[i].slice(from + skipped, to + skipped)});
      }
      row += run.tokens;
    }
  }
  return chunk;
}

nn::Chunk answer_chunk(const Prompt& prompt, int cached, std::span<const int32_t> ids) {
  return {.ids = ids, .offset = cached + prompt.positions.delta};
}

nn::Chunk next_chunk(const Prompt& prompt, int cached, const int32_t& id) {
  return answer_chunk(prompt, cached, {&id, 1});
}

}  // namespace whimbrel
