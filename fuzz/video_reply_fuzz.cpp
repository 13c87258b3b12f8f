// Any bytes as what a video decoder answers: each answer is a sound one, or throws Error.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "media/video_reply.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view left(reinterpret_cast<const char*>(data), size);
  const whimbrel::ByteSource source = [&left](void* target, size_t wanted) {
    if (wanted > left.size()) {
      throw whimbrel::Error(whimbrel::Fault::input, "fuzz", "got too few bytes");
    }
    std::memcpy(target, left.data(), wanted);
    left.remove_prefix(wanted);
  };
  try {
    const whimbrel::VideoTimeline timeline = whimbrel::read_video_timeline(source, "fuzz");
    if (timeline.frames < 1 || !(timeline.fps > 0)) {
      std::abort();
    }
    for (;;) {
      const whimbrel::Image image = whimbrel::read_video_frame(source, "fuzz");
      if (image.pixels.size() != size_t{3} * image.height * image.width || image.pixels.empty()) {
        std::abort();
      }
    }
  } catch (const whimbrel::Error&) {
  }
  return 0;
}
