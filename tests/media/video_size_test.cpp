#include "media/video_size.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace whimbrel {
namespace {

constexpr PatchLayout kPatches14{14, 2, 2};
constexpr PatchLayout kPatches16{16, 2, 2};

struct Row {
  int frames;
  Size size;
  Size expected;
};

void expect_sizes(
    const std::vector<Row>& rows,
    const PatchLayout& layout,
    const PixelBounds& bounds,
    VideoSizing sizing
) {
  for (const Row& row : rows) {
    const Size found = video_frame_size(row.size, row.frames, layout, bounds, sizing, "a video");
    EXPECT_EQ(found, row.expected)
        << row.frames << " of " << row.size.height << " x " << row.size.width << " gave "
        << found.height << " x " << found.width;
  }
}

// qwen-vl-utils' fetch_video with its own bounds.
TEST(VideoSize, a_frame_is_between_128_and_768_units) {
  expect_sizes(
      {{8, {168, 168}, {336, 336}},
       {5, {1080, 1920}, {560, 1008}},
       {16, {240, 320}, {280, 392}},
       {7, {480, 640}, {476, 644}}},
      kPatches14,
      {.min_pixels = 128 * 28 * 28, .max_pixels = 768 * 28 * 28},
      VideoSizing::per_frame
  );
}

TEST(VideoSize, frames_share_a_budget) {
  expect_sizes(
      {{64, {720, 1280}, {560, 1008}},
       {400, {720, 1280}, {504, 896}},
       {768, {1080, 1920}, {336, 644}}},
      kPatches14,
      {.min_pixels = 3136, .max_pixels = 12845056},
      VideoSizing::per_frame
  );
}

TEST(VideoSize, the_checkpoints_bounds_hold_below_the_caps) {
  expect_sizes(
      {{8, {168, 168}, {168, 168}}, {16, {240, 320}, {196, 252}}, {2, {20, 300}, {28, 420}}},
      kPatches14,
      {.min_pixels = 11760, .max_pixels = 56448},
      VideoSizing::per_frame
  );
}

// smart_resize of transformers' video_processing_qwen3_vl.py.
TEST(VideoSize, bounds_may_hold_for_the_whole_video) {
  expect_sizes(
      {{5, {1080, 1920}, {1088, 1920}},
       {16, {1080, 1920}, {928, 1664}},
       {64, {720, 1280}, {448, 832}},
       {768, {1080, 1920}, {128, 224}},
       {2, {20, 300}, {32, 480}},
       {7, {480, 640}, {480, 640}}},
      kPatches16,
      {.min_pixels = 4096, .max_pixels = 25165824},
      VideoSizing::per_video
  );
}

// 5 frames count as 4 where the bound is looked at, but as 5 where it is met.
TEST(VideoSize, an_odd_frame_counts_half_to_even) {
  constexpr int64_t kFour = 4 * 160 * 160;
  const auto size = [](int frames, int64_t most) {
    return video_frame_size(
        {168, 168}, frames, kPatches16, {1, most}, VideoSizing::per_video, "a video"
    );
  };
  EXPECT_EQ(size(5, kFour), (Size{160, 160}));
  EXPECT_EQ(size(5, kFour - 1), (Size{128, 128}));
  EXPECT_EQ(size(7, 7 * 160 * 160), (Size{160, 160}));
  EXPECT_EQ(size(1, 2 * 160 * 160), (Size{160, 160}));
}

TEST(VideoSize, a_ribbon_is_refused) {
  for (const VideoSizing sizing : {VideoSizing::per_frame, VideoSizing::per_video}) {
    EXPECT_THROW(
        video_frame_size({1, 201}, 2, kPatches16, {4096, 1 << 24}, sizing, "a video"), Error
    );
  }
}

}  // namespace
}  // namespace whimbrel
