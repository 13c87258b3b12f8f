#include "media/composite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace whimbrel {
namespace {

TEST(CompositeOnWhite, EveryLevelAndAlphaRoundsToNearest) {
  std::vector<uint8_t> rgba;
  for (int level = 0; level < 256; ++level) {
    for (int alpha = 0; alpha < 256; ++alpha) {
      const uint8_t value = static_cast<uint8_t>(level);
      rgba.insert(rgba.end(), {value, 0, 255, static_cast<uint8_t>(alpha)});
    }
  }
  const Image image = composite_on_white(rgba, {256, 256});
  ASSERT_EQ(image.pixels.size(), 256U * 256 * 3);
  for (int level = 0; level < 256; ++level) {
    for (int alpha = 0; alpha < 256; ++alpha) {
      const uint8_t* pixel = image.pixels.data() + (level * 256 + alpha) * 3;
      const double opacity = alpha / 255.0;
      EXPECT_EQ(pixel[0], std::lround(level * opacity + 255 * (1 - opacity)));
      EXPECT_EQ(pixel[1], 255 - alpha);
      EXPECT_EQ(pixel[2], 255);
    }
  }
}

}  // namespace
}  // namespace whimbrel
