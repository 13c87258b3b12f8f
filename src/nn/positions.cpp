#include "nn/positions.h"

#include <algorithm>

namespace whimbrel::nn {

namespace {

void append(Positions& positions, int32_t time, int32_t row, int32_t column) {
  positions.axes[0].push_back(time);
  positions.axes[1].push_back(row);
  positions.axes[2].push_back(column);
}

int32_t append_text(Positions& positions, int32_t next, int tokens) {
  for (int i = 0; i < tokens; ++i, ++next) {
    append(positions, next, next, next);
  }
  return next;
}

int32_t append_block(Positions& positions, int32_t next, const VisionBlock& block) {
  int32_t largest = 0;
  for (const int32_t time : block.frame_times) {
    for (int row = 0; row < block.height; ++row) {
      for (int column = 0; column < block.width; ++column) {
        append(positions, next + time, next + row, next + column);
      }
    }
    largest = std::max({largest, time, block.height - 1, block.width - 1});
  }
  return next + largest + 1;
}

}  // namespace

Positions mrope_positions(int prompt_tokens, std::span<const VisionBlock> blocks) {
  Positions positions;
  int32_t next = 0;
  int done = 0;
  for (const VisionBlock& block : blocks) {
    next = append_text(positions, next, block.first - done);
    next = append_block(positions, next, block);
    done = block.first + block.tokens();
  }
  next = append_text(positions, next, prompt_tokens - done);
  positions.delta = next - prompt_tokens;
  return positions;
}

}  // namespace whimbrel::nn
