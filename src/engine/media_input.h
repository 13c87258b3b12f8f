#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/cancelled.h"
#include "models/prompt.h"

namespace whimbrel {

/// The largest video, as a file or as the pictures of its frames together.
constexpr uint64_t kMaxVideoBytes = uint64_t{256} << 20;

/// A picture as it came: its encoded bytes, and what to call it in error texts.
struct EncodedPicture {
  std::string source;
  std::string bytes;
};

/// A picture, a video file, or a video as pictures of its frames.
struct MediaInput {
  std::string source;      // what to call it in answers and error texts
  std::string bytes = {};  // of the picture or video file
  MediaKind kind = MediaKind::image;
  std::vector<EncodedPicture> frames = {};  // of a video that isn't a file: taken as they are
  std::optional<double> fps = {};           // frames a second of `frames`, where known
  /// Tokens that this picture is to have at most, inside the bounds of MediaOptions and in place of
  /// its affordable_pixels. They give way to min_pixels. Not for videos.
  std::optional<int64_t> most_tokens = {};
};

/// What a user asks of pictures and videos instead of the checkpoint's own values.
struct MediaOptions {
  std::optional<int64_t> min_pixels = {};  // area of a picture, and of a frame of a video
  std::optional<int64_t> max_pixels = {};
  /// Area above which a picture is made smaller where neither of max_pixels and image_tokens is
  /// given: what this machine can look at in a bearable time. Not for videos.
  std::optional<int64_t> affordable_pixels = {};
  std::optional<int> image_tokens = {};  // the same as so many merged units of max_pixels
  std::optional<double> fps = {};        // frames a second that are looked at in a video file
  std::optional<int> max_frames = {};    // of one video
  /// Tokens that all of a prompt's media may have together; beyond them it is refused before their
  /// pixels are made.
  std::optional<int64_t> context = {};
  /// Seconds that decoding all of a prompt's media may take.
  std::optional<double> seconds = {};
  /// The program that decodes pictures (media/picture_decoder.h); empty: this process does, as for
  /// files that its own user names.
  std::filesystem::path picture_decoder = {};
  /// Asked while media are decoded and between them; ends the work by Error(Fault::interrupted).
  Cancelled cancelled = {};
};

}  // namespace whimbrel
