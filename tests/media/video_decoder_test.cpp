#include "media/video_decoder.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "base/error.h"
#include "media/video_sampling.h"
#include "tests/support/decoders.h"
#include "tests/support/made_by_tool.h"
#include "tests/support/picture_file.h"

namespace whimbrel::test {
namespace {

std::vector<Image> decode(std::string_view bytes, const std::vector<int64_t>& indices) {
  VideoDecoder decoder(video_decoder(), bytes, "clip");
  decoder.choose(indices);
  std::vector<Image> frames;
  for (size_t i = 0; i < indices.size(); ++i) {
    frames.push_back(decoder.next());
  }
  return frames;
}

std::string failure(
    std::string_view bytes,
    const std::filesystem::path& helper = video_decoder(),
    double seconds = kVideoSeconds
) {
  try {
    VideoDecoder decoder(helper, bytes, "clip", {.seconds = seconds});
    decoder.choose({0, decoder.timeline().frames - 1});
    decoder.next();
    decoder.next();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    EXPECT_TRUE(std::string_view(error.what()).starts_with("[clip] got ")) << error.what();
    return error.what();
  }
  return "";
}

std::array<int, 3> pixel(const Image& image, int y, int x) {
  const size_t at = (static_cast<size_t>(y) * image.width + x) * 3;
  return {image.pixels[at], image.pixels[at + 1], image.pixels[at + 2]};
}

void expect_near(const std::array<int, 3>& found, const std::array<int, 3>& expected) {
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(found[i], expected[i], 12);
  }
}

/// Frame i of each stored clip: white at the top left, elsewhere a colour of its own.
void expect_frame(const Image& image, int64_t i) {
  const int level = static_cast<int>(20 * i);
  expect_near(pixel(image, 5, 5), {255, 255, 255});
  expect_near(pixel(image, image.height - 5, image.width - 5), {level, 255 - level, 128});
}

class StoredClip : public testing::TestWithParam<const char*> {};

TEST_P(StoredClip, gives_the_chosen_frames) {
  const std::string bytes = read_media_golden("video/" + std::string(GetParam()));
  VideoDecoder decoder(video_decoder(), bytes, GetParam());
  EXPECT_EQ(decoder.timeline().frames, 12);
  EXPECT_NEAR(decoder.timeline().fps, 10, 0.01);
  for (const std::vector<int64_t>& indices :
       {std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
        std::vector<int64_t>{0, 11},
        std::vector<int64_t>{7},
        std::vector<int64_t>{3, 3, 8}}) {
    const std::vector<Image> frames = decode(bytes, indices);
    for (size_t i = 0; i < indices.size(); ++i) {
      EXPECT_EQ(frames[i].width, 64);
      expect_frame(frames[i], indices[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    clips,
    StoredClip,
    testing::Values("h264.mp4", "hevc.mp4", "vp8.webm", "vp9.webm", "av1.webm", "frames.gif")
);

TEST(VideoDecoder, a_turned_video_is_shown_upright) {
  const Image image = decode(read_media_golden("video/turned.mp4"), {4})[0];
  EXPECT_EQ(image.height, 64);
  EXPECT_EQ(image.width, 48);
  expect_near(pixel(image, 5, 43), {255, 255, 255});  // the top left, a quarter clockwise
  expect_near(pixel(image, 5, 5), {80, 175, 128});
}

/// `bytes` with `from`, which stands in there once, overwritten.
std::string patched(std::string bytes, std::string_view from, std::string_view to) {
  const size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos);
  return bytes.replace(at, to.size(), to);
}

TEST(VideoDecoder, a_mirrored_or_skewed_video_is_refused) {
  using namespace std::string_view_literals;
  // The display matrix: what a step right becomes, then what a step down becomes, in 16.16.
  constexpr auto kQuarter = "\0\0\0\0\0\1\0\0\0\0\0\0\xff\xff\0\0\0\0\0\0"sv;
  constexpr std::array kOthers = {
      "\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0"sv,                // transposed
      "\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\0\0"sv,            // upside down in a mirror
      "\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0"sv,            // in a mirror
      "\0\1\0\0\0\0\0\0\0\0\0\0\0\0\x80\0\0\1\0\0"sv,              // skewed
      "\0\0\xb5\4\0\0\xb5\4\0\0\0\0\xff\xff\x4a\xfc\0\0\xb5\4"sv,  // half a quarter
  };
  const std::string clip = read_media_golden("video/turned.mp4");
  for (const std::string_view other : kOthers) {
    EXPECT_NE(
        failure(patched(clip, kQuarter, other)).find("mirrored or turned"), std::string::npos
    );
  }
  constexpr auto kHalf = "\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\0\0"sv;
  const Image image = decode(patched(clip, kQuarter, kHalf), {4})[0];
  EXPECT_EQ(image.height, 48);
  expect_near(pixel(image, 43, 59), {255, 255, 255});
}

TEST(VideoDecoder, a_stated_rate_that_the_frames_contradict_does_not_count) {
  using namespace std::string_view_literals;
  constexpr auto kDefaultDuration = "\x23\xe3\x83\x84"sv;  // of a WebM's frames, in ns
  const std::string clip = read_media_golden("video/vp9.webm");
  for (const std::string_view nanoseconds :
       {"\0\0\x10\0"sv, "\1\0\0\0"sv, "\x20\0\0\0"sv, "\xff\xff\xff\xff"sv}) {
    const std::string other = std::string(kDefaultDuration) + std::string(nanoseconds);
    VideoDecoder decoder(video_decoder(), patched(clip, kDefaultDuration, other), "clip");
    EXPECT_NEAR(decoder.timeline().fps, 10, 0.01);
  }
}

TEST(VideoDecoder, what_is_no_video_is_refused_unread) {
  const std::vector<std::string> files = {
      "",
      "GIF8",
      "#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n",
      "ffconcat version 1.0\nfile /etc/passwd\n",
      "subfile,,start,0,end,100,,:/etc/passwd",
      std::string("RIFF\0\0\0\0AVI LIST", 16),
      read_media_golden("decode/png_rgb.png"),
  };
  for (const std::string& file : files) {
    EXPECT_NE(failure(file).find("another kind"), std::string::npos) << file;
  }
}

/// A GIF of one pixel, each frame shown for `hundredths` of a second.
std::string slow_gif(int frames, int hundredths) {
  using namespace std::string_literals;
  std::string gif = "GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff"s;
  for (int i = 0; i < frames; ++i) {
    gif += "\x21\xf9\4\4"s;  // graphic control: the delay
    gif += static_cast<char>(hundredths & 0xff);
    gif += static_cast<char>(hundredths >> 8);
    gif += "\0\0\x2c\0\0\0\0\1\0\1\0\0\2\2\x44\1\0"s;
  }
  return gif + ";";
}

TEST(VideoDecoder, ten_hours_are_sampled) {
  const std::string bytes = slow_gif(36000, 100);
  VideoDecoder decoder(video_decoder(), bytes, "clip");
  EXPECT_EQ(decoder.timeline().frames, 36000);
  EXPECT_NEAR(decoder.timeline().fps, 1, 1e-3);
  std::vector<int64_t> indices = sample_frames(36000, 1, {}, FrameCount::any);
  ASSERT_EQ(indices.size(), 768U);
  decoder.choose(indices);
  for (size_t i = 0; i < indices.size(); ++i) {
    ASSERT_EQ(decoder.next().pixels.size(), 3U);
  }
}

TEST(VideoDecoder, more_than_ten_hours_are_refused) {
  EXPECT_NE(failure(slow_gif(60, 65535)).find("ten hours"), std::string::npos);
}

TEST(VideoDecoder, frames_of_other_sizes_are_refused) {
  const std::string text = failure(read_media_golden("video/changing.webm"));
  EXPECT_NE(text.find("change their size"), std::string::npos) << text;
}

TEST(VideoDecoder, a_codec_off_the_list_is_refused) {
  EXPECT_NE(failure(read_media_golden("video/mpeg4.mp4")).find("codec"), std::string::npos);
}

TEST(VideoDecoder, a_part_of_a_video_is_refused) {
  for (const char* name : {"h264.mp4", "vp9.webm", "frames.gif"}) {
    const std::string bytes = read_media_golden("video/" + std::string(name));
    for (const size_t size : {size_t{13}, bytes.size() / 4, bytes.size() / 2}) {
      const std::string text = failure(bytes.substr(0, size));
      // Where whole packets were cut off a WebM or GIF, what is left is a shorter video.
      EXPECT_TRUE(text.empty() ? std::string_view(name) != "h264.mp4" : true)
          << name << " " << size;
    }
  }
}

TEST(VideoDecoder, the_decoder_can_do_nothing_but_decode) {
#if defined(__linux__)
  for (const char* attempt :
       {"open", "connect", "exec", "fork", "executable memory", "write elsewhere"}) {
    EXPECT_NE(failure(attempt, video_breakout()).find("must not"), std::string::npos) << attempt;
  }
#endif
  EXPECT_NE(failure("2 GiB", video_breakout()).find("gave up"), std::string::npos);
  EXPECT_NE(failure("endless loop", video_breakout()).find("too long"), std::string::npos);
  EXPECT_NE(failure("silence", video_breakout(), 0.5).find("too long"), std::string::npos);
  EXPECT_NE(failure("harmless", video_breakout()).find("another kind"), std::string::npos);
}

TEST(VideoDecoder, is_given_up_when_nobody_waits_for_it) {
  int questions = 0;
  const Patience patience{.seconds = 20, .cancelled = [&questions] { return ++questions > 4; }};
  try {
    VideoDecoder(video_breakout(), "silence", "clip", patience);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::interrupted) << error.what();
  }
}

/// A decoder that ends with `code` at once.
std::filesystem::path ending_helper(const TemporaryFolder& folder, int code) {
  const std::filesystem::path program = folder.path() / "helper";
  std::ofstream(program) << "#!/bin/sh\nexit " << code << "\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  return program;
}

TEST(VideoDecoder, a_decoder_that_cannot_run_is_not_the_videos_fault) {
  const TemporaryFolder folder;
  for (const auto& [code, named] : {std::pair(3, "locked in"), std::pair(127, "can't be loaded")}) {
    const std::filesystem::path helper = ending_helper(folder, code);
    try {
      VideoDecoder(helper, std::string(1 << 20, 'x'), "clip");
      ADD_FAILURE() << code;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::io);
      EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(helper.string()), std::string::npos);
    }
  }
  const std::filesystem::path helper = ending_helper(folder, 4);
  EXPECT_THROW(VideoDecoder(helper, "bytes", "clip"), std::logic_error);
}

TEST(VideoDecoder, a_request_that_the_decoder_does_not_know_is_our_fault) {
  VideoDecoder decoder(video_decoder(), read_media_golden("video/h264.mp4"), "clip");
  decoder.choose({12});
  EXPECT_THROW(decoder.next(), std::logic_error);
}

TEST(VideoDecoder, a_missing_decoder_is_named) {
  try {
    VideoDecoder("/nowhere/whimbrel-video", "bytes", "clip");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::io);
    EXPECT_NE(std::string(error.what()).find("/nowhere/whimbrel-video"), std::string::npos);
  }
}

}  // namespace
}  // namespace whimbrel::test
