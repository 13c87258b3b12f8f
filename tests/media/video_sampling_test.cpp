#include "media/video_sampling.h"

#include <gtest/gtest.h>

namespace whimbrel {
namespace {

using Indices = std::vector<int64_t>;

struct Row {
  int64_t total;
  double fps;
  FrameSampling sampling;
  Indices even;
  Indices any;
};

// What qwen-vl-utils' smart_nframes with torch.linspace, and transformers' Qwen3VLVideoProcessor
// with numpy.linspace give.
TEST(VideoSampling, indices_are_those_of_the_python_rules) {
  const std::vector<Row> rows = {
      {90, 30, {}, {0, 18, 36, 53, 71, 89}, {0, 18, 36, 53, 71, 89}},
      {149, 29.97, {}, {0, 21, 42, 63, 85, 106, 127, 148}, {0, 18, 37, 56, 74, 92, 111, 130, 148}},
      {50, 30, {}, {0, 16, 33, 49}, {0, 16, 33, 49}},
      {7, 30, {}, {0, 2, 4, 6}, {0, 2, 4, 6}},
      {3, 30, {}, {0, 2}, {0, 1, 2}},
      {2, 30, {}, {0, 1}, {0, 1}},
      {1, 30, {}, {0}, {0}},
      {100, 10, {.max_frames = 7}, {0, 20, 40, 59, 79, 99}, {0, 16, 33, 50, 66, 82, 99}},
      {8, 30, {.fps = 60, .min_frames = 5}, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}},
      {36000, 1, {.max_frames = 5}, {0, 12000, 23999, 35999}, {0, 9000, 18000, 26999, 35999}},
  };
  for (const Row& row : rows) {
    const auto sampled = [&row](FrameCount count) {
      return sample_frames(row.total, row.fps, row.sampling, count);
    };
    EXPECT_EQ(sampled(FrameCount::even), row.even) << row.total;
    EXPECT_EQ(sampled(FrameCount::any), row.any) << row.total;
  }
}

TEST(VideoSampling, never_more_than_a_prompt_may_hold) {
  for (const FrameCount count : {FrameCount::even, FrameCount::any}) {
    EXPECT_EQ(sample_frames(36000, 1, {}, count).size(), 768U);
    EXPECT_EQ(sample_frames(INT64_C(1) << 40, 1e-3, {.fps = 1000}, count).size(), 768U);
  }
}

TEST(VideoSampling, the_sampled_rate_is_what_was_taken_not_what_was_asked) {
  EXPECT_DOUBLE_EQ(sampled_fps(4, 50, 30), 2.4);
  EXPECT_DOUBLE_EQ(sampled_fps(6, 90, 30), 2.0);
}

TEST(VideoSampling, a_patch_stands_in_the_middle_of_its_frames) {
  EXPECT_EQ(patch_seconds({0, 1, 2, 3}, 2, 2), (std::vector<double>{0.25, 1.25}));
  EXPECT_EQ(patch_seconds({0, 1, 2, 3, 4}, 1, 2), (std::vector<double>{0.5, 2.5, 4}));
  EXPECT_EQ(patch_seconds({7}, 2, 2), (std::vector<double>{3.5}));
}

}  // namespace
}  // namespace whimbrel
