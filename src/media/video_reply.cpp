#include "media/video_reply.h"

#include "base/error.h"
#include "videokit.h"

namespace whimbrel {

namespace {

using videokit::Status;

// The text is ours: a library's own may show addresses or file content.
std::string_view describe(Status status) {
  switch (status) {
    case Status::unknown_container:
      return "a file of another kind, expected an MP4, WebM or GIF";
    case Status::no_video:
      return "a file without a picture track, expected a video";
    case Status::unknown_codec:
      return "a video in another codec, expected H.264, H.265, VP8, VP9, AV1 or GIF; convert it";
    case Status::too_long:
      return "a video of over ten hours, expected a shorter one; cut it";
    case Status::too_large:
      return "frames of more than 8192 x 4352 pixels, expected smaller ones; scale the video down";
    case Status::changing_size:
      return "a video whose frames change their size, expected one size; convert it";
    case Status::unsupported:
      return "a video that is mirrored or turned by something else than quarters, expected an "
             "upright one; convert it";
    case Status::no_memory:
      return "a video that needs over 1.5 GiB to decode, or more than this system allows, expected "
             "a smaller one; scale it down";
    case Status::broken:
    case Status::done:
      break;
  }
  return "a video with broken or missing data, expected an intact one; copy or convert it again";
}

[[noreturn]] void refuse(Status status, std::string_view where) {
  throw Error(Fault::input, where, "got {}", describe(status));
}

template <typename T>
T read_answer(const ByteSource& source, std::string_view where) {
  T answer;
  source(&answer, sizeof answer);
  const bool known = answer.magic == videokit::kReplyMagic && answer.status <= Status::last;
  if (!known || answer.status != Status::done) {
    refuse(known ? answer.status : Status::broken, where);
  }
  return answer;
}

}  // namespace

VideoTimeline read_video_timeline(const ByteSource& source, std::string_view where) {
  const auto answer = read_answer<videokit::Timeline>(source, where);
  const bool valid = answer.frames >= 1 && answer.frames <= videokit::kMaxPackets &&
                     answer.fps >= videokit::kLeastFps && answer.fps <= videokit::kMostFps;
  if (!valid) {
    refuse(Status::broken, where);
  }
  return {answer.frames, answer.fps};
}

Image read_video_frame(const ByteSource& source, std::string_view where) {
  const auto answer = read_answer<videokit::Frame>(source, where);
  const uint64_t pixels = uint64_t{answer.height} * answer.width;
  if (answer.height > videokit::kMaxSide || answer.width > videokit::kMaxSide || pixels < 1 ||
      pixels > videokit::kMaxPixels) {
    refuse(Status::broken, where);
  }
  Image image{static_cast<int>(answer.height), static_cast<int>(answer.width), {}};
  image.pixels.resize(pixels * 3);
  source(image.pixels.data(), image.pixels.size());
  return image;
}

}  // namespace whimbrel
