#include "cli/media_flags.h"

#include <algorithm>

#include "base/error.h"
#include "cli/input_files.h"
#include "media/decode.h"
#include "media/video_sampling.h"

namespace whimbrel {

namespace {

constexpr double kLeastFps = 1e-4;
constexpr double kMostFps = 1000;

CLI::Range area() {
  return {int64_t{1}, ImageLimits{}.max_pixels, "PIXELS"};
}

}  // namespace

void add_media_options(CLI::App& command, MediaFlags& flags) {
  command.add_option("--image", flags.images, "Picture file; repeat for several")
      ->allow_extra_args(false);
  command.add_option("--video", flags.videos, "Video file (MP4, WebM, GIF); repeat for several")
      ->allow_extra_args(false);
  const std::string group = "Pictures and videos (defaults: the model's own files)";
  MediaOptions& options = flags.options;
  command.add_option("--min-pixels", options.min_pixels, "Enlarge a smaller picture to this area")
      ->group(group)
      ->check(area());
  command.add_option("--max-pixels", options.max_pixels, "Shrink a larger picture to this area")
      ->group(group)
      ->check(area());
  command.add_option("--image-tokens", options.image_tokens, "The same as a number of tokens")
      ->group(group)
      ->check(CLI::Range(1, 65536, "TOKENS"))
      ->excludes("--max-pixels");
  command.add_option("--fps", options.fps, "Frames a second to look at in a video file")
      ->group(group)
      ->check(CLI::Range(kLeastFps, kMostFps, "FPS"));
  command.add_option("--max-frames", options.max_frames, "Most frames of a video")
      ->group(group)
      ->check(CLI::Range(1, kMaxVideoFrames, "FRAMES"));
}

std::vector<MediaInput> read_media_files(const CLI::App& command, const MediaFlags& flags) {
  const CLI::Option* image = command.get_option("--image");
  const CLI::Option* video = command.get_option("--video");
  auto next_image = flags.images.begin();
  auto next_video = flags.videos.begin();
  std::vector<MediaInput> media;
  for (const CLI::Option* given : command.parse_order()) {
    if (given == image) {
      media.push_back(read_media_file(*next_image, *next_image, MediaKind::image));
      ++next_image;
    } else if (given == video) {
      media.push_back(read_media_file(*next_video, *next_video, MediaKind::video));
      ++next_video;
    }
  }
  return media;
}

void require_videos_for_flags(const MediaFlags& flags, const std::vector<MediaInput>& media) {
  const bool asked = flags.options.fps || flags.options.max_frames;
  if (asked && std::ranges::count(media, MediaKind::video, &MediaInput::kind) == 0) {
    throw Error(
        Fault::usage,
        flags.options.fps ? "--fps" : "--max-frames",
        "got no video, expected one for this flag to act on"
    );
  }
}

}  // namespace whimbrel
