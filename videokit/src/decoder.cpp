#include "decoder.h"

#include <algorithm>
#include <array>

#include "give_up.h"

namespace videokit {

namespace {

struct Codec {
  AVCodecID id;
  const char* decoder;
};

// Decoders by name: a file can't choose another implementation.
constexpr std::array kCodecs = {
    Codec{AV_CODEC_ID_H264, "h264"},
    Codec{AV_CODEC_ID_HEVC, "hevc"},
    Codec{AV_CODEC_ID_VP8, "vp8"},
    Codec{AV_CODEC_ID_VP9, "vp9"},
    Codec{AV_CODEC_ID_AV1, "libdav1d"},
    Codec{AV_CODEC_ID_GIF, "gif"},
};

const AVCodec& find_decoder(AVCodecID id) {
  const auto* const found = std::ranges::find(kCodecs, id, &Codec::id);
  const AVCodec* codec =
      found == kCodecs.end() ? nullptr : avcodec_find_decoder_by_name(found->decoder);
  if (codec == nullptr) {
    throw GiveUp{Status::unknown_codec};
  }
  return *codec;
}

void require_size(int height, int width) {
  const auto rows = static_cast<uint64_t>(std::max(height, 0));
  const auto columns = static_cast<uint64_t>(std::max(width, 0));
  if (rows > kMaxSide || columns > kMaxSide || rows * columns > kMaxPixels) {
    throw GiveUp{Status::too_large};
  }
}

}  // namespace

Decoder::Decoder(Container& container)
    : container_(container),
      packet_(&allocated(av_packet_alloc())),
      frame_(&allocated(av_frame_alloc())) {
  open();
}

void Decoder::open() {
  const AVCodecParameters& parameters = *container_.video().codecpar;
  const AVCodec& codec = find_decoder(parameters.codec_id);
  require_size(parameters.height, parameters.width);
  codec_.reset(&allocated(avcodec_alloc_context3(&codec)));
  check(avcodec_parameters_to_context(codec_.get(), &parameters));
  codec_->thread_count = 1;
  codec_->max_pixels = static_cast<int64_t>(kMaxPixels);
  codec_->pkt_timebase = container_.video().time_base;
  check(avcodec_open2(codec_.get(), &codec, nullptr));
}

void Decoder::decode(
    const std::vector<int64_t>& times, const std::function<void(const AVFrame&)>& send
) {
  container_.rewind();
  size_t sent = 0;
  const FramePtr last(&allocated(av_frame_alloc()));
  for (size_t skipped_for = times.size(); sent < times.size();) {
    if (skipped_for != sent) {
      skip_to_key(times[sent]);
      skipped_for = sent;
    }
    if (!next_frame()) {
      break;
    }
    const bool damaged = (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0;
    const int64_t shown = frame_->best_effort_timestamp;
    for (; sent < times.size() && times[sent] <= shown; ++sent) {
      check(damaged ? AVERROR_INVALIDDATA : 0);
      send(*frame_);
    }
    av_frame_unref(last.get());
    av_frame_move_ref(last.get(), frame_.get());
  }
  check(sent < times.size() && last->data[0] == nullptr ? AVERROR_INVALIDDATA : 0);
  for (; sent < times.size(); ++sent) {
    send(*last);
  }
}

// The last key frame from packet `from` on that is shown no later than `time`, or `from`.
size_t Decoder::key_before(int64_t time, size_t from) const {
  const std::vector<PacketMark>& packets = container_.packets();
  size_t found = from;
  for (size_t i = from; i < packets.size(); ++i) {
    if (packets[i].key && packets[i].pts > time) {
      break;
    }
    if (packets[i].key) {
      found = i;
    }
  }
  return found;
}

void Decoder::skip_to_key(int64_t time) {
  if (ended_ || codec_->codec_id == AV_CODEC_ID_GIF) {  // each GIF frame is painted over the last
    return;
  }
  const size_t key = key_before(time, fed_);
  if (key == fed_) {
    return;
  }
  while (fed_ < key && container_.next(*packet_)) {
    ++fed_;
  }
  avcodec_flush_buffers(codec_.get());
}

bool Decoder::feed() {
  if (ended_) {
    return false;
  }
  if (container_.next(*packet_)) {
    ++fed_;
    check(avcodec_send_packet(codec_.get(), packet_.get()));
  } else {
    ended_ = true;
    check(avcodec_send_packet(codec_.get(), nullptr));
  }
  return true;
}

bool Decoder::next_frame() {
  for (;;) {
    const int code = avcodec_receive_frame(codec_.get(), frame_.get());
    if (code == AVERROR(EAGAIN) && feed()) {
      continue;
    }
    if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) {
      return false;
    }
    check(code);
    require_size(frame_->height, frame_->width);
    return true;
  }
}

}  // namespace videokit
