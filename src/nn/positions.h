#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace whimbrel::nn {

/// A run of media tokens in a prompt, in merged units: frames x height x width, row-major.
struct VisionBlock {
  int first;                         // index of its first token in the prompt
  int height;                        // merged rows
  int width;                         // merged columns
  std::vector<int32_t> frame_times;  // position of each frame on the time axis, from 0

  int tokens() const { return static_cast<int>(frame_times.size()) * height * width; }
};

/// Positions of a prompt's tokens on the axes time, height, width, each as long as the prompt.
struct Positions {
  std::array<std::vector<int32_t>, 3> axes;
  /// Next position minus number of tokens: a token behind the prompt stands at index + delta.
  int delta = 0;
};

/// M-RoPE positions (Qwen2-VL paper, section 2.1; HF get_rope_index): text advances all axes by
/// one; a block keeps its own rows and columns, and what follows starts behind the largest of them.
/// Blocks are in prompt order and must not overlap.
Positions mrope_positions(int prompt_tokens, std::span<const VisionBlock> blocks);

}  // namespace whimbrel::nn
