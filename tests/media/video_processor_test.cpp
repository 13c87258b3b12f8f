#include "media/video_processor.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/json.h"

namespace whimbrel {
namespace {

namespace fs = std::filesystem;

constexpr VideoRules kRules = {
    .frame_count = FrameCount::even,
    .sizing = VideoSizing::per_frame,
    .bounds = {.min_pixels = 1000, .max_pixels = 2000},
};

// A folder of its own for each test, gone with it.
class ReadVideoProcessor : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / ("video_processor_" + std::string(test.name()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const Json& json) const {
    std::ofstream(folder_ / name) << json.dump();
  }
  VideoProcessor read() const { return read_video_processor(folder_, kRules); }

  fs::path folder_;
};

Json complete(int min_pixels) {
  return {
      {"patch_size", 14},
      {"merge_size", 2},
      {"temporal_patch_size", 2},
      {"image_mean", {0.5, 0.5, 0.5}},
      {"image_std", {0.5, 0.5, 0.5}},
      {"min_pixels", min_pixels},
      {"max_pixels", 5000},
  };
}

TEST_F(ReadVideoProcessor, files_are_tried_in_transformers_order) {
  write("preprocessor_config.json", complete(1));
  EXPECT_EQ(read().pixels.min_pixels, 1);
  write("video_preprocessor_config.json", complete(2));
  EXPECT_EQ(read().pixels.min_pixels, 2);
  write("processor_config.json", {{"image_processor", complete(3)}});
  EXPECT_EQ(read().pixels.min_pixels, 2);
  write("processor_config.json", {{"video_processor", complete(4)}});
  EXPECT_EQ(read().pixels.min_pixels, 4);
}

TEST_F(ReadVideoProcessor, the_familys_bounds_stand_in_for_missing_ones) {
  Json config = complete(1);
  config.erase("min_pixels");
  config.erase("max_pixels");
  write("video_preprocessor_config.json", config);
  EXPECT_EQ(read().pixels.min_pixels, 1000);
  EXPECT_EQ(read().pixels.max_pixels, 2000);
}

TEST_F(ReadVideoProcessor, sampling_is_read_and_bounded) {
  Json config = complete(1);
  write("video_preprocessor_config.json", config);
  EXPECT_EQ(read().sampling.fps, 2);
  EXPECT_EQ(read().sampling.min_frames, 4);
  EXPECT_EQ(read().sampling.max_frames, 768);
  config.update({{"fps", 1.5}, {"min_frames", 6}, {"max_frames", 16}});
  write("video_preprocessor_config.json", config);
  EXPECT_EQ(read().sampling.fps, 1.5);
  EXPECT_EQ(read().sampling.min_frames, 6);
  EXPECT_EQ(read().sampling.max_frames, 16);
  config["max_frames"] = 100000;
  write("video_preprocessor_config.json", config);
  EXPECT_EQ(read().sampling.max_frames, 768);
}

TEST_F(ReadVideoProcessor, impossible_sampling_is_refused_with_its_file) {
  for (const Json& wrong : {Json{{"fps", 0}}, Json{{"min_frames", 20}, {"max_frames", 16}}}) {
    Json config = complete(1);
    config.update(wrong);
    write("video_preprocessor_config.json", config);
    try {
      read();
      ADD_FAILURE() << wrong.dump();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::model);
      EXPECT_NE(
          std::string(error.what()).find("video_preprocessor_config.json"), std::string::npos
      );
    }
  }
}

// ---- frames

VideoProcessor processor() {
  VideoProcessor processor{.pixels = {}, .sampling = {}, .rules = kRules};
  processor.pixels.patch_size = 2;
  processor.pixels.merge_size = 2;
  processor.pixels.temporal_patch_size = 2;
  processor.pixels.min_pixels = 1;
  processor.pixels.max_pixels = 1 << 20;
  processor.pixels.image_mean = {0, 0, 0};
  processor.pixels.image_std = {1, 1, 1};
  return processor;
}

VideoFrame grey(int i, int height = 4, int width = 8) {
  const auto level = static_cast<uint8_t>(10 * i);
  const auto size = static_cast<size_t>(height * width * 3);
  return {"frame " + std::to_string(i), {height, width, std::vector<uint8_t>(size, level)}};
}

TEST(PreprocessVideo, the_last_frame_fills_the_last_patch) {
  const Patches patches = preprocess_video(3, [](int i) { return grey(i); }, processor());
  EXPECT_EQ(patches.grid_thw, (std::array<int, 3>{2, 2, 4}));
  EXPECT_EQ(patches.original, (Size{4, 8}));
  EXPECT_EQ(patches.resized, (Size{4, 8}));
  // A row: 3 channels of 2 frames of 2 x 2 pixels.
  const auto level = [&patches](size_t patch, size_t frame) {
    return patches.values[patch * 24 + frame * 4] * 255;
  };
  EXPECT_FLOAT_EQ(level(0, 0), 0);
  EXPECT_FLOAT_EQ(level(0, 1), 10);
  EXPECT_FLOAT_EQ(level(8, 0), 20);
  EXPECT_FLOAT_EQ(level(8, 1), 20);
}

TEST(PreprocessVideo, any_count_is_filled_up_to_whole_patches) {
  for (const int count : {1, 2, 3, 4, 5, 8}) {
    const Patches patches = preprocess_video(count, [](int i) { return grey(i); }, processor());
    EXPECT_EQ(patches.grid_thw[0], (count + 1) / 2) << count;
  }
}

TEST(PreprocessVideo, a_frame_of_another_size_is_named) {
  try {
    preprocess_video(3, [](int i) { return grey(i, 4, i == 2 ? 12 : 8); }, processor());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    EXPECT_NE(std::string(error.what()).find("[frame 2] got a frame of 4 x 12"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace whimbrel
