#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "media/decoder_process.h"
#include "media/image.h"
#include "media/video_reply.h"

namespace whimbrel {

/// The program that decodes videos (find_decoder).
std::filesystem::path find_video_decoder();

/// How long a video may take, in seconds of wall time. The helper's own bound on processor time is
/// 300.
constexpr double kVideoSeconds = 600;

/// A video file being decoded by a process of its own (videokit/): MP4, WebM or GIF of H.264,
/// H.265, VP8, VP9 or AV1, up to 256 MiB, ten hours, and 8192 x 4352 pixels. All calls throw
/// Error(Fault::input, where) on a file that isn't one, is broken, or is over a bound, and
/// Error(Fault::interrupted) where they were cancelled.
class VideoDecoder {
 public:
  VideoDecoder(
      const std::filesystem::path& helper,
      std::string_view bytes,
      const std::string& where,
      const Patience& patience = {.seconds = kVideoSeconds}
  );

  const VideoTimeline& timeline() const { return timeline_; }

  /// Chooses frames by their index, ascending; to be called once.
  void choose(const std::vector<int64_t>& indices);

  /// The next chosen frame, as displayed. To be called as often as frames were chosen.
  Image next();

 private:
  ByteSource replies();

  std::string where_;
  DecoderProcess process_;
  VideoTimeline timeline_;
};

}  // namespace whimbrel
