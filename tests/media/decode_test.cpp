#include "media/decode.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/support/hostile_pictures.h"
#include "tests/support/picture_file.h"

namespace whimbrel {
namespace {

using namespace std::string_literals;
using test::gif_of;
using test::jpeg_of;
using test::jpeg_with_scans;
using test::png_of;
using test::webp_of;

Image decode_golden(const std::string& file) {
  return decode_image(test::read_media_golden("decode/" + file), file);
}

// The refusal's text; a test failure where the picture is accepted.
std::string refusal(std::string_view bytes, const ImageLimits& limits = {}) {
  try {
    decode_image(bytes, "picture", limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    return error.what();
  }
  ADD_FAILURE() << "the picture was accepted";
  return {};
}

// ---- against Pillow

class Decode : public testing::TestWithParam<std::string> {};

TEST_P(Decode, EqualsPillowInEveryByte) {
  const std::string& file = GetParam();
  const std::string stem = file.substr(0, file.find('.'));
  const Image expected = test::read_ppm(test::media_golden("decode/" + stem + ".ppm"));
  EXPECT_EQ(test::largest_difference(decode_golden(file), expected), 0);
}

TEST_P(Decode, HeaderAloneGivesTheSize) {
  const std::string& file = GetParam();
  const Image image = decode_golden(file);
  const ImageHeader header =
      read_image_header(test::read_media_golden("decode/" + file), "picture");
  EXPECT_EQ(header.height, image.height);
  EXPECT_EQ(header.width, image.width);
}

INSTANTIATE_TEST_SUITE_P(
    Png,
    Decode,
    testing::Values(
        "png_rgb.png",
        "png_rgba.png",
        "png_grey.png",
        "png_grey_alpha.png",
        "png_grey_1_bit.png",
        "png_grey_2_bit.png",
        "png_grey_4_bit.png",
        "png_palette.png",
        "png_palette_transparency.png",
        "png_rgb_key.png",
        "png_interlaced.png",
        "png_interlaced_small.png",
        "png_16_bit_rgb.png",
        "png_16_bit_rgba.png",
        "png_16_bit_grey.png",
        "png_16_bit_grey_alpha.png"
    )
);

INSTANTIATE_TEST_SUITE_P(
    Jpeg,
    Decode,
    testing::Values(
        "jpeg_444.jpg",
        "jpeg_422.jpg",
        "jpeg_420.jpg",
        "jpeg_progressive.jpg",
        "jpeg_restarts.jpg",
        "jpeg_grey.jpg",
        "jpeg_cmyk.jpg",
        "jpeg_ycck.jpg"
    )
);

INSTANTIATE_TEST_SUITE_P(
    Webp,
    Decode,
    testing::Values(
        "webp_lossy.webp",
        "webp_lossless.webp",
        "webp_lossy_alpha.webp",
        "webp_lossless_alpha.webp",
        "webp_animated_offset.webp"
    )
);

INSTANTIATE_TEST_SUITE_P(
    Gif,
    Decode,
    testing::Values(
        "gif_plain.gif",
        "gif_animated.gif",
        "gif_local_palette.gif",
        "gif_interlaced.gif",
        "gif_transparent.gif",
        "gif_offset.gif",
        "gif_offset_transparent.gif",
        "gif_beyond_canvas.gif",
        "gif_no_palette.gif"
    )
);

TEST(DecodeOrientation, EightOrientationsGiveOnePicture) {
  const Image expected = test::read_ppm(test::media_golden("decode/exif.ppm"));
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const std::string extension : {"png", "webp", "jpg"}) {
      const std::string file = fmt::format("exif_{}.{}", orientation, extension);
      const int allowed = extension == "jpg" ? 1 : 0;  // what the codec itself loses
      EXPECT_LE(test::largest_difference(decode_golden(file), expected), allowed) << file;
      const std::string bytes = test::read_media_golden("decode/" + file);
      const ImageHeader header = read_image_header(bytes, file);
      EXPECT_EQ((Size{header.height, header.width}), (Size{16, 24})) << file;
    }
  }
}

TEST(DecodeFormat, IsToldByTheBytes) {
  const auto format = [](std::string_view file) {
    return format_name(read_image_header(test::read_media_golden(file), "x").format);
  };
  EXPECT_EQ(format("decode/png_rgb.png"), "PNG");
  EXPECT_EQ(format("decode/jpeg_444.jpg"), "JPEG");
  EXPECT_EQ(format("decode/webp_lossy.webp"), "WebP");
  EXPECT_EQ(format("decode/gif_plain.gif"), "GIF");
}

// ---- what is refused

TEST(DecodeRefusal, OtherFilesAreNamed) {
  const std::string expected = ", expected a JPEG, PNG, WebP or GIF picture";
  EXPECT_EQ(refusal(""), "[picture] got an empty file" + expected);
  EXPECT_EQ(refusal("What is in this?\n"), "[picture] got text" + expected);
  EXPECT_EQ(refusal("BM\x46\0\0\0"s), "[picture] got a BMP" + expected);
  EXPECT_EQ(
      refusal(
          "\0\0\0\x20"
          "ftypheic"s
      ),
      "[picture] got a HEIC" + expected
  );
  EXPECT_EQ(refusal("\x01\x02\x03\x04"), "[picture] got a file of an unknown format" + expected);
}

TEST(DecodeRefusal, BombsAreRefusedFromTheHeader) {
  const std::string text =
      "[picture] got 50000 x 40000 pixels (height x width), expected sides of at most 16384 and at "
      "most 67108864 pixels in all; scale the picture down";
  EXPECT_EQ(refusal(png_of(50000, 40000)), text);
  EXPECT_EQ(refusal(gif_of(50000, 40000)), text);
  EXPECT_EQ(refusal(webp_of(50000, 40000)), text);
  EXPECT_EQ(refusal(jpeg_of(50000, 40000)), text);
  for (const std::string& bytes :
       {png_of(16384, 4097), gif_of(16384, 4097), webp_of(16383, 16383)}) {
    EXPECT_NE(refusal(bytes).find("67108864 pixels"), std::string::npos);
  }
  EXPECT_NE(refusal(png_of(0xffffffff, 1)).find("broken data"), std::string::npos);
}

// In a process of its own, whose peak of memory starts from here.
[[noreturn]] void refuse_all_and_exit(const std::vector<std::string>& bombs) {
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  int accepted = 0;
  for (const std::string& bomb : bombs) {
    try {
      decode_image(bomb, "bomb");
      ++accepted;
    } catch (const Error&) {
    }
  }
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
#ifdef __APPLE__
  constexpr long kMegabyte = 1 << 20;
#else
  constexpr long kMegabyte = 1 << 10;
#endif
  const bool small = after.ru_maxrss - before.ru_maxrss < 10 * kMegabyte;
  const double seconds =
      static_cast<double>(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
      static_cast<double>(after.ru_utime.tv_usec - before.ru_utime.tv_usec) * 1e-6;
  std::exit(accepted == 0 && small && seconds < 1.0 ? 0 : 1);
}

TEST(DecodeRefusal, BombsTakeLittleMemoryAndTime) {
  const std::vector<std::string> bombs = {
      png_of(50000, 50000),
      jpeg_of(50000, 50000),
      gif_of(50000, 50000),
      webp_of(16383, 16383),
      png_of(16384, 4097),
      jpeg_with_scans(10000),
  };
  EXPECT_EXIT(refuse_all_and_exit(bombs), testing::ExitedWithCode(0), "");
}

TEST(DecodeRefusal, AspectOver200) {
  EXPECT_EQ(
      refusal(png_of(1, 16384)),
      "[picture] got 1 x 16384 pixels (height x width), expected a longer side of at most 200 "
      "times the shorter; crop the picture"
  );
  EXPECT_NE(refusal(png_of(16384, 1)).find("16384 x 1 pixels"), std::string::npos);
  EXPECT_NE(refusal(jpeg_of(201, 1)).find("200 times"), std::string::npos);
  EXPECT_NO_THROW(read_image_header(png_of(200, 1), "picture"));
}

TEST(DecodeRefusal, NoPixels) {
  EXPECT_EQ(
      refusal(png_of(0, 7)), "[picture] got 0 x 7 pixels (height x width), expected at least 1 x 1"
  );
  EXPECT_NE(refusal(jpeg_of(0, 7)).find("without a picture"), std::string::npos);
  EXPECT_NE(refusal("GIF89a\1\0\1\0\0\0\0;"s).find("without a picture"), std::string::npos);
}

TEST(DecodeRefusal, LimitsAreTheCallers) {
  const std::string bytes = test::read_media_golden("decode/png_rgb.png");  // 20 x 30
  EXPECT_NE(refusal(bytes, {.max_bytes = 100}).find("at most 100"), std::string::npos);
  EXPECT_NE(refusal(bytes, {.max_side = 29}).find("sides of at most 29"), std::string::npos);
  EXPECT_NE(refusal(bytes, {.max_pixels = 599}).find("599 pixels"), std::string::npos);
  EXPECT_NE(refusal(bytes, {.max_aspect = 1}).find("at most 1 times"), std::string::npos);
  EXPECT_NO_THROW(decode_image(
      bytes, "x", {.max_bytes = bytes.size(), .max_side = 30, .max_pixels = 600, .max_aspect = 2}
  ));
}

TEST(DecodeRefusal, ScansWithoutEnd) {
  EXPECT_NO_THROW(decode_image(jpeg_with_scans(100), "picture"));
  EXPECT_EQ(
      refusal(jpeg_with_scans(10000)),
      "[picture] got a JPEG with an excessive number of progressive scans, expected a common one; "
      "save it again"
  );
}

// ---- broken data

class Broken : public testing::TestWithParam<std::string> {};

// A broken picture is refused, or what it shows is whole.
void expect_refused_or_equal(const std::string& bytes, const Image& whole, size_t at) {
  try {
    const Image image = decode_image(bytes, "picture");
    EXPECT_EQ(test::largest_difference(image, whole), 0) << "cut at byte " << at;
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    EXPECT_NE(std::string(error.what()).find("[picture] got "), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("expected "), std::string::npos);
  }
}

TEST_P(Broken, CutAtEachByte) {
  const std::string bytes = test::read_media_golden("decode/" + GetParam());
  const Image whole = decode_image(bytes, "picture");
  for (size_t size = 0; size < bytes.size(); ++size) {
    expect_refused_or_equal(bytes.substr(0, size), whole, size);
  }
  EXPECT_NE(
      refusal(bytes.substr(0, bytes.size() / 4)).find("whose data end early"), std::string::npos
  );
}

TEST_P(Broken, FlippedBitsNeverCrash) {
  const std::string bytes = test::read_media_golden("decode/" + GetParam());
  const ImageLimits limits{.max_pixels = 100'000};
  int refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ mask);
      try {
        decode_image(changed, "picture", limits);
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::input);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Seeds,
    Broken,
    testing::Values(
        "png_rgb.png",
        "png_palette_transparency.png",
        "png_interlaced_small.png",
        "png_16_bit_rgba.png",
        "jpeg_420.jpg",
        "jpeg_progressive.jpg",
        "jpeg_restarts.jpg",
        "jpeg_cmyk.jpg",
        "webp_lossy.webp",
        "webp_lossless_alpha.webp",
        "webp_animated_offset.webp",
        "gif_interlaced.gif",
        "gif_offset_transparent.gif",
        "exif_6.jpg"
    )
);

TEST(BrokenPng, AnyFlippedBitIsNoticed) {
  // Beside the pixels: a transparent colour, and an orientation behind them.
  for (const std::string file : {"png_rgb_key.png", "exif_7.png"}) {
    const std::string bytes = test::read_media_golden("decode/" + file);
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ 0x10);
      EXPECT_THROW(decode_image(changed, "picture"), Error) << file << " at " << at;
    }
  }
}

TEST(BrokenJpeg, HalfAPictureWithAnEndMarkerIsRefused) {
  const std::string bytes = test::read_media_golden("decode/jpeg_444.jpg");
  EXPECT_NE(
      refusal(bytes.substr(0, bytes.size() * 3 / 4) + "\xff\xd9").find("broken data"),
      std::string::npos
  );
}

TEST(BrokenWebp, BytesAfterTheContainerAreIgnored) {
  const std::string bytes = test::read_media_golden("decode/webp_lossless.webp");
  EXPECT_EQ(
      test::largest_difference(
          decode_image(bytes + "trailing", "picture"), decode_image(bytes, "picture")
      ),
      0
  );
}

}  // namespace
}  // namespace whimbrel
