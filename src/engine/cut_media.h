#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/frontend.h"
#include "engine/media_input.h"

namespace whimbrel {

/// A picture or video cut into patches, and when its frames are shown.
struct CutMedium {
  MediaKind kind = MediaKind::image;
  std::string source;
  Patches patches;
  std::vector<int32_t> frame_times;  // of each temporal patch on the time axis, from 0
  std::vector<double> seconds;       // the same in seconds; only of VideoTiming::timestamped
  Size wanted = {};  // of a picture: its size without affordable_pixels and most_tokens
};

/// All of a request's media in order, and the milliseconds that they took.
struct CutMedia {
  std::vector<CutMedium> media;
  double media_decode = 0;
  double preprocess = 0;
};

/// Decodes, resizes and cuts media as the checkpoint and the options say. `frontend` has media
/// rules. Throws Error(Fault::input) for a picture or video that can't be read,
/// Error(Fault::usage) for options that contradict each other or the checkpoint,
/// Error(Fault::interrupted) where it was cancelled.
CutMedia cut_media(
    const Frontend& frontend, const std::vector<MediaInput>& inputs, const MediaOptions& options
);

}  // namespace whimbrel
