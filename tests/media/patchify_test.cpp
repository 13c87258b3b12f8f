#include "media/patchify.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace whimbrel {
namespace {

constexpr PatchLayout kLayout{.patch_size = 2, .merge_size = 2, .temporal_patch_size = 2};
constexpr PixelScale kLevels{.mean = {0, 0, 0}, .std = {1, 1, 1}};

// Every level tells where it stands: channel, and a running number over frames and pixels.
std::vector<Image> numbered_frames(int count, int height, int width) {
  std::vector<Image> frames(count);
  int number = 0;
  for (Image& frame : frames) {
    frame.height = height;
    frame.width = width;
    for (int i = 0; i < height * width; ++i, ++number) {
      for (int channel = 0; channel < 3; ++channel) {
        frame.pixels.push_back(static_cast<uint8_t>(number % 80 * 3 + channel));
      }
    }
  }
  return frames;
}

// Row `row` of the patches, value (channel, time, y, x), by the definition of the order.
float by_definition(
    const std::vector<Image>& frames, int row, int channel, int time, int y, int x
) {
  const int blocks_wide = frames[0].width / kLayout.factor();
  const int blocks_high = frames[0].height / kLayout.factor();
  const int dx = row % 2;
  const int dy = row / 2 % 2;
  const int block_x = row / 4 % blocks_wide;
  const int block_y = row / 4 / blocks_wide % blocks_high;
  const int slice = row / 4 / blocks_wide / blocks_high;
  const Image& frame = frames[slice * 2 + time];
  const int at_y = (block_y * 2 + dy) * 2 + y;
  const int at_x = (block_x * 2 + dx) * 2 + x;
  return frame.pixels[(at_y * frame.width + at_x) * 3 + channel];
}

TEST(Patchify, OrderIsMergeBlockMajorAndChannelOutermost) {
  const std::vector<Image> frames = numbered_frames(4, 8, 12);
  const Patches patches = patchify(frames, kLayout, kLevels);
  EXPECT_EQ(patches.grid_thw, (std::array{2, 4, 6}));
  ASSERT_EQ(patches.count, 2 * 4 * 6);
  ASSERT_EQ(patches.width, 3 * 2 * 2 * 2);
  ASSERT_EQ(patches.values.size(), 48U * 24);
  size_t index = 0;
  for (int row = 0; row < 48; ++row) {
    for (int channel = 0; channel < 3; ++channel) {
      for (int at = 0; at < 8; ++at, ++index) {  // time, y, x
        EXPECT_EQ(
            patches.values[index], by_definition(frames, row, channel, at / 4, at / 2 % 2, at % 2)
        ) << "row "
          << row << " channel " << channel << " value " << at;
      }
    }
  }
}

TEST(Patchify, ScaleIsSubtractThenDivideInFloat32) {
  const std::vector<Image> frames = numbered_frames(2, 4, 4);
  const PixelScale scale{.mean = {122.77F, 116.75F, 104.09F}, .std = {68.5F, 66.63F, 70.32F}};
  const Patches plain = patchify(frames, kLayout, kLevels);
  const Patches scaled = patchify(frames, kLayout, scale);
  for (size_t i = 0; i < plain.values.size(); ++i) {
    const size_t channel = i % 24 / 8;
    EXPECT_EQ(scaled.values[i], (plain.values[i] - scale.mean[channel]) / scale.std[channel]);
  }
}

TEST(Patchify, RefusesFramesThatDoNotFit) {
  EXPECT_THROW(patchify({}, kLayout, kLevels), Error);
  EXPECT_THROW(patchify(numbered_frames(3, 4, 4), kLayout, kLevels), Error);
  EXPECT_THROW(patchify(numbered_frames(2, 4, 6), kLayout, kLevels), Error);
  EXPECT_THROW(patchify(numbered_frames(2, 6, 4), kLayout, kLevels), Error);
  EXPECT_THROW(patchify(numbered_frames(2, 0, 4), kLayout, kLevels), Error);
  std::vector<Image> mixed = numbered_frames(2, 4, 4);
  mixed[1] = numbered_frames(1, 8, 4)[0];
  EXPECT_THROW(patchify(mixed, kLayout, kLevels), Error);
}

}  // namespace
}  // namespace whimbrel
