#include "media/patchify.h"

#include <cstddef>

#include "base/error.h"

namespace whimbrel {

namespace {

constexpr int kChannels = 3;
constexpr int kLevels = 256;

// The float value of every level of every channel.
using ScaleTable = std::array<std::array<float, kLevels>, kChannels>;

ScaleTable make_table(const PixelScale& scale) {
  ScaleTable table;
  for (size_t channel = 0; channel < kChannels; ++channel) {
    for (size_t level = 0; level < kLevels; ++level) {
      table[channel][level] =
          (static_cast<float>(level) - scale.mean[channel]) / scale.std[channel];
    }
  }
  return table;
}

void check_frames(std::span<const Image> frames, const PatchLayout& layout) {
  if (frames.empty() || frames.size() % layout.temporal_patch_size != 0) {
    throw Error(
        Fault::input,
        "patches",
        "got {} frames, expected a multiple of {}",
        frames.size(),
        layout.temporal_patch_size
    );
  }
  const Size size{frames[0].height, frames[0].width};
  for (const Image& frame : frames) {
    const Size found{frame.height, frame.width};
    if (found != size || found.height < 1 || found.width < 1 ||
        found.height % layout.factor() != 0 || found.width % layout.factor() != 0) {
      throw Error(
          Fault::input,
          "patches",
          "got a frame of {} x {} pixels (height x width), expected frames of one size with sides "
          "that are multiples of {}",
          found.height,
          found.width,
          layout.factor()
      );
    }
  }
}

// One frame's part of one patch and channel: patch_size rows from (top, left).
float* append_square(
    const Image& frame,
    int top,
    int left,
    size_t channel,
    const PatchLayout& layout,
    const ScaleTable& table,
    float* out
) {
  for (int y = top; y < top + layout.patch_size; ++y) {
    const size_t index = static_cast<size_t>(y) * frame.width + left;
    const uint8_t* level = frame.pixels.data() + index * kChannels + channel;
    for (int x = 0; x < layout.patch_size; ++x, level += kChannels) {
      *out++ = table[channel][*level];
    }
  }
  return out;
}

// The tokens of one temporal slice: blocks row by row, and in each block its patches row by row.
float* append_slice(
    std::span<const Image> slice, const PatchLayout& layout, const ScaleTable& table, float* out
) {
  const int factor = layout.factor();
  const int patches_in_block = layout.merge_size * layout.merge_size;
  for (int block_top = 0; block_top < slice[0].height; block_top += factor) {
    for (int block_left = 0; block_left < slice[0].width; block_left += factor) {
      for (int patch = 0; patch < patches_in_block; ++patch) {
        const int top = block_top + patch / layout.merge_size * layout.patch_size;
        const int left = block_left + patch % layout.merge_size * layout.patch_size;
        for (size_t channel = 0; channel < kChannels; ++channel) {
          for (const Image& frame : slice) {
            out = append_square(frame, top, left, channel, layout, table, out);
          }
        }
      }
    }
  }
  return out;
}

}  // namespace

Patches patchify(
    std::span<const Image> frames, const PatchLayout& layout, const PixelScale& scale
) {
  check_frames(frames, layout);
  const Size size{frames[0].height, frames[0].width};
  const size_t depth = layout.temporal_patch_size;
  Patches patches;
  patches.original = size;
  patches.resized = size;
  patches.grid_thw = {
      static_cast<int>(frames.size() / depth),
      size.height / layout.patch_size,
      size.width / layout.patch_size,
  };
  patches.count = int64_t{patches.grid_thw[0]} * patches.grid_thw[1] * patches.grid_thw[2];
  patches.width =
      int64_t{kChannels} * layout.temporal_patch_size * layout.patch_size * layout.patch_size;
  patches.values.resize(patches.count * patches.width);
  const ScaleTable table = make_table(scale);
  float* out = patches.values.data();
  for (size_t first = 0; first < frames.size(); first += depth) {
    out = append_slice(frames.subspan(first, depth), layout, table, out);
  }
  return patches;
}

}  // namespace whimbrel
