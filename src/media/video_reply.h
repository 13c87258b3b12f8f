#pragma once

#include <cstdint>
#include <string_view>

#include "media/byte_source.h"
#include "media/image.h"

namespace whimbrel {

/// What a video file holds: so many frames, so many a second.
struct VideoTimeline {
  int64_t frames = 0;
  double fps = 0;
};

/// Reads the decoder's answers (videokit.h). They come from a process that has read a stranger's
/// file, so each number is checked before it is used. Throw Error(Fault::input, where) with the
/// decoder's reason, or where an answer is no valid one.
VideoTimeline read_video_timeline(const ByteSource& source, std::string_view where);
Image read_video_frame(const ByteSource& source, std::string_view where);

}  // namespace whimbrel
