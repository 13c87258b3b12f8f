#include "media/picture_decoder.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "media/encode_png.h"
#include "media/picture_wire.h"
#include "tests/support/decoders.h"
#include "tests/support/hostile_pictures.h"
#include "tests/support/made_by_tool.h"
#include "tests/support/picture_file.h"
#include "tests/support/source_dir.h"

namespace whimbrel::test {
namespace {

namespace fs = std::filesystem;

/// Pixels, or the refusal's text.
struct Outcome {
  Image image;
  std::string refusal;
};

template <typename Decode>
Outcome outcome_of(const Decode& decode) {
  try {
    return {decode(), ""};
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input) << error.what();
    EXPECT_TRUE(std::string_view(error.what()).starts_with("[picture] got ")) << error.what();
    return {{}, error.what()};
  }
}

Outcome decode_here(std::string_view bytes, const ImageLimits& limits = {}) {
  return outcome_of([&] { return decode_image(bytes, "picture", limits); });
}

Outcome decode_apart(
    std::string_view bytes,
    const ImageLimits& limits = {},
    const fs::path& decoder = picture_decoder(),
    double seconds = kPictureSeconds
) {
  return outcome_of([&] {
    return decode_image_apart(decoder, bytes, "picture", limits, {.seconds = seconds});
  });
}

void expect_equal(const Outcome& found, const Outcome& expected, const std::string& what) {
  EXPECT_EQ(found.refusal, expected.refusal) << what;
  EXPECT_EQ(largest_difference(found.image, expected.image), 0) << what;
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".ppm") {
      files.push_back(entry.path());
    }
  }
  EXPECT_FALSE(files.empty()) << folder;
  return files;
}

TEST(PictureDecoder, gives_the_pixels_and_refusals_of_this_process) {
  std::vector<fs::path> files = files_of(source_dir() / "tests/golden/media/decode");
  for (const char* folder : {"examples", "fuzz/corpus/picture"}) {
    const std::vector<fs::path> more = files_of(source_dir() / folder);
    files.insert(files.end(), more.begin(), more.end());
  }
  int decoded = 0;
  for (const fs::path& file : files) {
    const std::string bytes = read_file(file, Fault::io);
    const Outcome expected = decode_here(bytes);
    expect_equal(decode_apart(bytes), expected, file.string());
    decoded += expected.refusal.empty() ? 1 : 0;
  }
  EXPECT_GT(decoded, 60);
}

TEST(PictureDecoder, the_callers_limits_hold) {
  const std::string bytes = read_media_golden("decode/png_rgb.png");  // 20 x 30
  for (const ImageLimits& limits :
       {ImageLimits{.max_bytes = 100},
        ImageLimits{.max_side = 29},
        ImageLimits{.max_pixels = 599},
        ImageLimits{.max_aspect = 1}}) {
    const Outcome expected = decode_here(bytes, limits);
    EXPECT_FALSE(expected.refusal.empty());
    expect_equal(decode_apart(bytes, limits), expected, expected.refusal);
  }
}

// F25: truncations at each byte of small seeds, flipped bits. As in this process; nothing dies.
TEST(F25BrokenPictures, are_refused_by_the_decoders_process_as_by_this_one) {
  for (const char* seed :
       {"exif_2.png", "exif_2.webp", "gif_offset.gif", "png_interlaced_small.png"}) {
    const std::string bytes = read_media_golden("decode/" + std::string(seed));
    for (size_t size = 0; size < bytes.size(); ++size) {
      const std::string cut = bytes.substr(0, size);
      expect_equal(decode_apart(cut), decode_here(cut), seed);
    }
  }
}

TEST(F25BrokenPictures, with_flipped_bits_are_refused_or_shown_as_in_this_process) {
  const ImageLimits limits{.max_pixels = 100'000};
  for (const char* seed : {"exif_2.webp", "gif_offset.gif", "jpeg_grey.jpg"}) {
    const std::string bytes = read_media_golden("decode/" + std::string(seed));
    for (size_t at = 0; at < bytes.size(); at += 2) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (at % 4 == 0 ? 0x80 : 0x05));
      expect_equal(decode_apart(changed, limits), decode_here(changed, limits), seed);
    }
  }
}

TEST(F25BrokenPictures, what_is_no_picture_never_reaches_a_decoder) {
  for (const char* bytes : {"", "GIF8", "text", "BM123456", "%PDF-1.7"}) {
    expect_equal(decode_apart(bytes, {}, "/nowhere/decoder"), decode_here(bytes), bytes);
  }
}

/// A picture of noise.
Image noise(int height, int width) {
  Image image{height, width, std::vector<uint8_t>(size_t{3} * height * width)};
  uint32_t state = 1;
  for (uint8_t& level : image.pixels) {
    state = state * 1664525 + 1013904223;
    level = static_cast<uint8_t>(state >> 24);
  }
  return image;
}

// F26: odd pictures. What they become is held against Pillow in decode_test.cpp.
TEST(F26OddPictures, of_few_pixels_come_back_as_they_are) {
  for (const int height : {1, 2, 3, 28, 63, 64}) {
    for (const int width : {1, 2, 5, 28, 63, 64}) {
      const Image image = noise(height, width);
      EXPECT_EQ(largest_difference(decode_apart(encode_png(image)).image, image), 0);
    }
  }
}

TEST(F26OddPictures, with_a_colour_profile_are_as_without) {
  using namespace std::string_literals;
  const std::string plain = read_media_golden("decode/jpeg_444.jpg");
  const std::string profile = "\xff\xe2\x00\x20ICC_PROFILE\0\1\1"s + std::string(16, 'p');
  const std::string profiled = plain.substr(0, 2) + profile + plain.substr(2);
  expect_equal(decode_apart(profiled), decode_here(plain), "with a profile");
}

// F28: what a decoder that was taken over might try.
TEST(F28Sandbox, a_picture_decoder_can_do_nothing_but_decode) {
  const auto refusal = [](std::string_view attempt, double seconds = kPictureSeconds) {
    return decode_apart("GIF89a" + std::string(attempt), {}, picture_breakout(), seconds).refusal;
  };
#if defined(__linux__)
  for (const char* attempt :
       {"open", "connect", "exec", "fork", "executable memory", "write elsewhere"}) {
    EXPECT_NE(refusal(attempt).find("must not"), std::string::npos) << attempt;
  }
#endif
  EXPECT_NE(refusal("2 GiB").find("gave up"), std::string::npos);
  EXPECT_NE(refusal("endless loop").find("too long"), std::string::npos);
  EXPECT_NE(refusal("silence", 0.5).find("too long"), std::string::npos);
  EXPECT_NE(refusal("harmless").find("GIF"), std::string::npos);
}

// F29: bombs. The program learns the size from the header and asks for no pixel.
TEST(F29Bombs, are_refused_from_the_header) {
  for (const std::string& bomb :
       {png_of(50000, 50000),
        jpeg_of(50000, 50000),
        gif_of(50000, 50000),
        webp_of(16383, 16383),
        png_of(16384, 4097),
        png_of(1, 16384),
        png_of(16384, 1)}) {
    const Outcome expected = decode_here(bomb);
    EXPECT_NE(expected.refusal.find("pixels (height x width)"), std::string::npos);
    expect_equal(decode_apart(bomb), expected, expected.refusal);
  }
}

TEST(F29Bombs, scans_without_end_are_counted) {
  const std::string bomb = jpeg_with_scans(10000);
  EXPECT_NE(decode_apart(bomb).refusal.find("progressive scans"), std::string::npos);
}

TEST(PictureDecoder, is_given_up_when_nobody_waits_for_it) {
  int questions = 0;
  const Patience patience{.seconds = 20, .cancelled = [&questions] { return ++questions > 4; }};
  try {
    decode_image_apart(picture_breakout(), "GIF89asilence", "picture", {}, patience);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::interrupted) << error.what();
  }
}

/// A decoder that ends with `code` at once.
fs::path ending_decoder(const TemporaryFolder& folder, int code) {
  const fs::path program = folder.path() / "decoder";
  std::ofstream(program) << "#!/bin/sh\nexit " << code << "\n";
  fs::permissions(program, fs::perms::owner_all);
  return program;
}

TEST(PictureDecoder, a_decoder_that_cannot_run_is_not_the_pictures_fault) {
  const std::string bytes = read_media_golden("decode/png_rgb.png");
  const TemporaryFolder folder;
  const std::map<int, std::string> named = {{3, "picture decoder be locked in"}, {127, "loaded"}};
  for (const auto& [code, text] : named) {
    try {
      decode_image_apart(ending_decoder(folder, code), bytes, "picture");
      ADD_FAILURE() << code;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::io);
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
  EXPECT_NE(
      decode_apart(bytes, {}, ending_decoder(folder, 0)).refusal.find("gave up"), std::string::npos
  );
}

/// What read_picture_size makes of a reply: a size, or nothing where it refuses.
std::optional<Size> size_in(const PictureReply& reply) {
  const ByteSource source = [&reply](void* data, size_t size) {
    ASSERT_EQ(size, sizeof reply);
    std::memcpy(data, &reply, size);
  };
  try {
    return read_picture_size(source, ImageFormat::png, "picture");
  } catch (const Error&) {
    return std::nullopt;
  }
}

TEST(PictureReply, a_number_out_of_range_is_refused) {
  EXPECT_EQ(size_in({.height = 2, .width = 3}), (Size{2, 3}));
  EXPECT_FALSE(size_in({.magic = 0, .height = 2, .width = 3}));
  EXPECT_FALSE(size_in({.damage = Damage::truncated, .height = 2, .width = 3}));
  EXPECT_FALSE(size_in({.damage = static_cast<Damage>(1000), .height = 2, .width = 3}));
  EXPECT_FALSE(size_in({.height = 1U << 31, .width = 3}));
  EXPECT_FALSE(size_in({.height = 2, .width = 0xffffffff}));
}

}  // namespace
}  // namespace whimbrel::test
