#include "engine/box_scale.h"

#include <gtest/gtest.h>

namespace whimbrel {
namespace {

/// A picture of 400 x 300 that is looked at in 280 x 140.
MediaSpan some_picture() {
  MediaSpan span;
  span.patches.original = {.height = 300, .width = 400};
  span.patches.resized = {.height = 140, .width = 280};
  return span;
}

std::vector<int64_t> mapped(std::vector<double> numbers, BoxConvention convention) {
  const std::vector<MediaSpan> media = {some_picture()};
  return to_pixels({std::move(numbers)}, box_scale(media, convention).value());
}

TEST(BoxScale, thousandths_are_those_of_the_pictures_sides) {
  EXPECT_EQ(
      mapped({100, 200, 500, 1000}, BoxConvention::thousandths),
      (std::vector<int64_t>{40, 60, 200, 300})
  );
}

TEST(BoxScale, pixels_of_the_resized_picture_go_back_side_by_side) {
  EXPECT_EQ(
      mapped({28, 14, 280, 140}, BoxConvention::resized_pixels),
      (std::vector<int64_t>{40, 30, 400, 300})
  );
  EXPECT_EQ(mapped({7, 7}, BoxConvention::resized_pixels), (std::vector<int64_t>{10, 15}));
}

TEST(BoxScale, pixels_are_rounded_and_neither_clamped_nor_sorted) {
  EXPECT_EQ(
      mapped({999, 2, 1, 1}, BoxConvention::thousandths), (std::vector<int64_t>{400, 1, 0, 0})
  );
  EXPECT_EQ(
      mapped({1100, -10, 1e6, -1e6}, BoxConvention::thousandths),
      (std::vector<int64_t>{440, -3, 400'000, -300'000})
  );
}

TEST(BoxScale, only_one_picture_is_certain_to_be_meant) {
  const MediaSpan picture = some_picture();
  MediaSpan video = some_picture();
  video.kind = MediaKind::video;
  const auto has_scale = [](const std::vector<MediaSpan>& media) {
    return box_scale(media, BoxConvention::thousandths).has_value();
  };
  EXPECT_TRUE(has_scale({picture}));
  EXPECT_FALSE(has_scale({}));
  EXPECT_FALSE(has_scale({video}));
  EXPECT_FALSE(has_scale({picture, picture}));
  EXPECT_FALSE(has_scale({picture, video}));
  const std::vector<MediaSpan> one = {picture};
  EXPECT_FALSE(box_scale(one, BoxConvention::unknown));
}

}  // namespace
}  // namespace whimbrel
