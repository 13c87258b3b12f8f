#include "media/encode_png.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "media/decode.h"

namespace whimbrel {
namespace {

TEST(EncodePng, decodes_to_the_same_pixels) {
  Image image{.height = 3, .width = 5, .pixels = {}};
  for (int i = 0; i < 3 * 5 * 3; ++i) {
    image.pixels.push_back(static_cast<uint8_t>(i * 37));
  }
  const Image decoded = decode_image(encode_png(image), "drawing");
  EXPECT_EQ(decoded.height, 3);
  EXPECT_EQ(decoded.width, 5);
  EXPECT_EQ(decoded.pixels, image.pixels);
}

TEST(EncodePng, refuses_a_picture_without_pixels) {
  EXPECT_THROW(encode_png(Image{}), Error);
}

}  // namespace
}  // namespace whimbrel
