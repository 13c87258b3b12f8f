#include "media/image_processor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "media/decode.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/source_dir.h"

namespace whimbrel {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = test::source_dir();

// ---- configuration

// A folder of its own for each test, gone with it.
class ReadImageProcessor : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / ("image_processor_" + std::string(test.name()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const Json& json) const {
    std::ofstream(folder_ / name) << json.dump();
  }
  ImageProcessor read(const Json& plain) const {
    write("preprocessor_config.json", plain);
    return read_image_processor(folder_);
  }
  std::string refusal(const Json& plain) const {
    try {
      read(plain);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::model);
      return error.what();
    }
    ADD_FAILURE() << "accepted " << plain.dump();
    return {};
  }
  // The error's text: file, then this.
  std::string in_file(const std::string& text) const {
    return "[" + (folder_ / "preprocessor_config.json").string() + "] got " + text;
  }

  fs::path folder_;
};

Json complete() {
  return {
      {"patch_size", 14},
      {"merge_size", 2},
      {"temporal_patch_size", 2},
      {"min_pixels", 3136},
      {"max_pixels", 12845056},
      {"image_mean", {0.5, 0.25, 0.125}},
      {"image_std", {0.5, 0.25, 1}},
  };
}

Json with(const std::string& key, const Json& value) {
  Json json = complete();
  json[key] = value;
  return json;
}

Json without(const std::string& key) {
  Json json = complete();
  json.erase(key);
  return json;
}

TEST_F(ReadImageProcessor, OldFile) {
  const ImageProcessor processor = read(complete());
  EXPECT_EQ(processor.patch_size, 14);
  EXPECT_EQ(processor.merge_size, 2);
  EXPECT_EQ(processor.temporal_patch_size, 2);
  EXPECT_EQ(processor.min_pixels, 3136);
  EXPECT_EQ(processor.max_pixels, 12845056);
  EXPECT_EQ(processor.image_mean, (std::array{0.5F, 0.25F, 0.125F}));
  EXPECT_EQ(processor.image_std, (std::array{0.5F, 0.25F, 1.0F}));
  EXPECT_EQ(processor.rescale_factor, 1.0 / 255.0);
}

TEST_F(ReadImageProcessor, NewFileGoesFirst) {
  write("processor_config.json", {{"image_processor", with("patch_size", 16)}});
  EXPECT_EQ(read(complete()).patch_size, 16);
}

TEST_F(ReadImageProcessor, NewFileWithoutImageProcessorIsPassedOver) {
  write("processor_config.json", {{"processor_class", "Some"}});
  EXPECT_EQ(read(complete()).patch_size, 14);
}

TEST_F(ReadImageProcessor, BoundsInOrder) {
  const Json size = {{"shortest_edge", 65536}, {"longest_edge", 16777216}};
  // Explicit names win over size.
  EXPECT_EQ(read(with("size", size)).min_pixels, 3136);
  EXPECT_EQ(read(with("size", size)).max_pixels, 12845056);
  // Size holds areas.
  Json only_size = without("min_pixels");
  only_size.erase("max_pixels");
  only_size["size"] = size;
  EXPECT_EQ(read(only_size).min_pixels, 65536);
  EXPECT_EQ(read(only_size).max_pixels, 16777216);
  // The family's values come last, and are never guessed.
  write("preprocessor_config.json", without("min_pixels"));
  EXPECT_EQ(read_image_processor(folder_, PixelBounds{100, 200}).min_pixels, 100);
  EXPECT_EQ(read_image_processor(folder_, PixelBounds{100, 200}).max_pixels, 12845056);
  EXPECT_EQ(
      refusal(without("min_pixels")),
      in_file("neither \"min_pixels\" nor \"size\", expected one of them")
  );
}

TEST_F(ReadImageProcessor, RefusesWhatItDoesNotDo) {
  for (const std::string step : {"do_resize", "do_rescale", "do_normalize"}) {
    EXPECT_EQ(
        refusal(with(step, false)),
        in_file(
            "\"" + step +
            "\": false, expected true: pictures are always resized, rescaled and normalised"
        )
    );
  }
  EXPECT_EQ(
      refusal(with("resample", 2)),
      in_file("\"resample\": 2, expected 3 (bicubic), the only filter there is")
  );
}

TEST_F(ReadImageProcessor, NamesFileAndKey) {
  for (const std::string key :
       {"patch_size", "merge_size", "temporal_patch_size", "image_mean", "image_std"}) {
    EXPECT_NE(refusal(without(key)).find("\"" + key + "\""), std::string::npos);
    EXPECT_NE(refusal(with(key, "x")).find("\"" + key + "\": \"x\""), std::string::npos);
  }
  EXPECT_NE(refusal(with("patch_size", 0)).find("\"patch_size\": 0"), std::string::npos);
  EXPECT_NE(refusal(with("image_mean", {1, 2})).find("three numbers"), std::string::npos);
  EXPECT_NE(refusal(with("image_std", {1, 0, 1})).find("\"image_std\""), std::string::npos);
  EXPECT_NE(refusal(with("rescale_factor", 0)).find("\"rescale_factor\""), std::string::npos);
  EXPECT_NE(refusal(with("max_pixels", 3135)).find("min_pixels 3136 over"), std::string::npos);
  Json sides = without("max_pixels");
  sides["size"] = {{"height", 224}, {"width", 224}};
  EXPECT_NE(refusal(sides).find("no \"longest_edge\""), std::string::npos);
  fs::remove(folder_ / "preprocessor_config.json");
  EXPECT_THROW(read_image_processor(folder_), Error);
}

TEST(ImageProcessorFiles, EveryBundledCheckpointReads) {
  int read = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / "models")) {
    const ImageProcessor processor = read_image_processor(entry.path());
    EXPECT_TRUE(processor.patch_size == 14 || processor.patch_size == 16) << entry.path();
    EXPECT_LT(processor.min_pixels, processor.max_pixels) << entry.path();
    ++read;
  }
  EXPECT_GT(read, 0);
}

// ---- patches against transformers

struct Case {
  std::string reference;
  std::string picture;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.reference;
}

class PreprocessImage : public testing::TestWithParam<Case> {};

// The level, 0 to 255, behind a value; exact for values rounded to float16 too.
int level_of(float value, const ImageProcessor& processor, size_t channel) {
  const float unit = value * processor.image_std[channel] + processor.image_mean[channel];
  return static_cast<int>(std::lround(unit * 255.0F));
}

TEST_P(PreprocessImage, PixelsWithinOneLevelOfTheReference) {
  const Case& c = GetParam();
  const ImageProcessor processor = read_image_processor(kRoot / "models/tiny-qwen2-5-vl");
  const fs::path golden = kRoot / "tests/golden/reference";
  const test::SafetensorsFile reference(
      golden / "tiny-qwen2-5-vl" / (c.reference + ".safetensors")
  );
  const fs::path file = golden / "media" / (c.picture + ".png");
  const Image image = decode_image(read_file(file, Fault::io), file.string());
  const Patches patches = preprocess_image(image, processor);

  ASSERT_EQ(reference.shape("pixel_values"), (std::vector{patches.count, patches.width}));
  const std::vector<int32_t> grid = reference.ints("grid_thw");
  EXPECT_TRUE(std::equal(grid.begin(), grid.end(), patches.grid_thw.begin()));
  const std::vector<float> expected = reference.floats("pixel_values");
  int64_t equal = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t channel = i % patches.width / (patches.width / 3);
    const int found = level_of(patches.values[i], processor, channel);
    const int distance = std::abs(found - level_of(expected[i], processor, channel));
    ASSERT_LE(distance, 1) << "value " << i;
    equal += distance == 0 ? 1 : 0;
    ASSERT_NEAR(patches.values[i], expected[i], distance / 255.0 / 0.26 + 0.002);
  }
  EXPECT_GT(equal, static_cast<int64_t>(expected.size()) * 9 / 10);
}

INSTANTIATE_TEST_SUITE_P(
    Reference,
    PreprocessImage,
    testing::Values(
        Case{"colour-blue", "blue"},
        Case{"describe-wide", "wide"},
        Case{"describe-odd", "odd"},
        Case{"describe-tall", "tall"}
    )
);

constexpr ImageProcessor kProcessor{
    .patch_size = 14,
    .merge_size = 2,
    .temporal_patch_size = 2,
    .min_pixels = 3136,
    .max_pixels = 50176,
    .image_mean = {0.5F, 0.5F, 0.5F},
    .image_std = {0.5F, 0.5F, 0.5F},
};

TEST(PreprocessOddSizes, OneToSixtyFourGiveWholeGrids) {
  for (int height = 1; height <= 64; ++height) {
    for (int width = 1; width <= 64; width += 3) {
      const Image image{height, width, std::vector<uint8_t>(height * width * 3, 255)};
      const Patches patches = preprocess_image(image, kProcessor);
      EXPECT_EQ(patches.original, (Size{height, width}));
      EXPECT_EQ(patches.resized, resized_size({height, width}, kProcessor));
      EXPECT_EQ(patches.grid_thw[1] * 14, patches.resized.height);
      EXPECT_EQ(patches.grid_thw[2] * 14, patches.resized.width);
      EXPECT_EQ(patches.grid_thw[1] % 2 + patches.grid_thw[2] % 2, 0);
      ASSERT_EQ(patches.values.size(), size_t(patches.count) * 1176);
      // White stays white through any resize.
      EXPECT_TRUE(std::ranges::all_of(patches.values, [](float value) { return value == 1.0F; }));
    }
  }
}

TEST(PreprocessOddSizes, AspectOver200IsRefused) {
  const Image strip{1, 16384, std::vector<uint8_t>(16384 * 3)};
  EXPECT_THROW(preprocess_image(strip, kProcessor, "strip.png"), Error);
}

TEST(PreprocessImageRescale, FactorIsDividedOutOfMeanAndDeviation) {
  ImageProcessor processor = kProcessor;
  processor.rescale_factor = 1.0 / 127.5;
  const Image image{28, 28, std::vector<uint8_t>(28 * 28 * 3, 255)};
  EXPECT_EQ(preprocess_image(image, processor).values[0], 3.0F);  // (2 - 0.5) / 0.5
}

}  // namespace
}  // namespace whimbrel
