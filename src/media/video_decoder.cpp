#include "media/video_decoder.h"

#include "base/error.h"
#include "videokit.h"

namespace whimbrel {

namespace fs = std::filesystem;

fs::path find_video_decoder() {
  return find_decoder("whimbrel-video");
}

VideoDecoder::VideoDecoder(
    const fs::path& helper,
    std::string_view bytes,
    const std::string& where,
    const Patience& patience
)
    : where_(where), process_(helper, {"video", where, patience}) {
  if (bytes.size() > videokit::kMaxBytes) {
    throw Error(
        Fault::input,
        where,
        "got {} bytes, expected a video of at most {}; cut or convert it",
        bytes.size(),
        videokit::kMaxBytes
    );
  }
  const videokit::Request request{videokit::kRequestMagic, 0, bytes.size()};
  process_.send(&request, sizeof request);
  process_.send(bytes.data(), bytes.size());
  timeline_ = read_video_timeline(replies(), where_);
}

void VideoDecoder::choose(const std::vector<int64_t>& indices) {
  const auto count = static_cast<uint32_t>(indices.size());
  process_.send(&count, sizeof count);
  process_.send(indices.data(), indices.size() * sizeof(int64_t));
}

Image VideoDecoder::next() {
  return read_video_frame(replies(), where_);
}

ByteSource VideoDecoder::replies() {
  return [this](void* data, size_t size) { process_.receive(data, size); };
}

}  // namespace whimbrel
