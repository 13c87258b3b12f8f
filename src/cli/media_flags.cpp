#include "cli/media_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cli/input_files.h"
#include "cli/terminal.h"
#include "media/decode.h"
#include "media/video_sampling.h"
#include "ops/device.h"

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
  command
      .add_option(
          "--max-pixels",
          options.max_pixels,
          "Shrink a larger picture to this area (on a CPU: 1003520, or the model's own where less)"
      )
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

MediaOptions options_for_device(const MediaFlags& flags) {
  MediaOptions options = flags.options;
  if (ops::backend_name() == "cpu") {
    options.affordable_pixels = kCpuMaxPixels;
  }
  return options;
}

void say_reduced(const std::vector<ReducedPicture>& reduced, const Frontend& frontend) {
  for (const auto& [source, wanted, taken] : reduced) {
    write_stderr(
        fmt::format(
            "{}: looked at in {}x{} instead of {}x{} pixels, which would take long on a CPU; "
            "--max-pixels {} keeps the size\n",
            source,
            taken.width,
            taken.height,
            wanted.width,
            wanted.height,
            frontend.image_processor->max_pixels
        )
    );
  }
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
