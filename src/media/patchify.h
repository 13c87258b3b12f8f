#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "media/image.h"

namespace whimbrel {

/// How frames are cut: patches of patch_size x patch_size pixels over temporal_patch_size frames,
/// merge_size x merge_size neighbours next to each other.
struct PatchLayout {
  int patch_size = 0;
  int merge_size = 0;
  int temporal_patch_size = 0;

  /// Both sides of a frame are multiples of this.
  int factor() const { return patch_size * merge_size; }
};

/// value = (level - mean) / std in float32, `level` from 0 to 255, one entry a channel.
struct PixelScale {
  std::array<float, 3> mean{};
  std::array<float, 3> std{};
};

/// Input rows of a vision tower: `values` is [count, width] row-major, float32.
struct Patches {
  std::vector<float> values;
  int64_t count = 0;              // t * h * w
  int64_t width = 0;              // 3 * temporal_patch_size * patch_size^2
  std::array<int, 3> grid_thw{};  // in patches
  Size original;                  // the picture's size before its resize
  Size resized;                   // the size that was cut
};

/// Cuts frames of one size into patches. A row is flattened [channel, time, y, x]; rows run
/// (t, h / merge, w / merge, dy, dx), so each merge^2 consecutive rows become one token
/// (transformers' Qwen2VLImageProcessor). A still image is given temporal_patch_size times.
/// `original` is left as the frames' size. Throws Error(Fault::input) when the number of frames is
/// no multiple of temporal_patch_size, or a side none of the factor, or sizes differ.
Patches patchify(std::span<const Image> frames, const PatchLayout& layout, const PixelScale& scale);

}  // namespace whimbrel
