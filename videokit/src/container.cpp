#include "container.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "give_up.h"

namespace videokit {

namespace {

constexpr int kBufferBytes = 1 << 16;

// By the first bytes alone, so that no other parser of FFmpeg ever sees a file.
const char* demuxer_name(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.size() >= 12 && bytes.substr(4, 4) == "ftyp"sv) {
    return "mov";
  }
  if (bytes.starts_with("\x1A\x45\xDF\xA3"sv)) {
    return "matroska";
  }
  if (bytes.starts_with("GIF87a"sv) || bytes.starts_with("GIF89a"sv)) {
    return "gif";
  }
  return nullptr;
}

// A file may name others; none is opened.
int refuse_to_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EPERM);
}

int64_t shown_at(const AVPacket& packet) {
  return packet.pts != AV_NOPTS_VALUE ? packet.pts : packet.dts;
}

}  // namespace

Container::Container(std::string bytes) : bytes_(std::move(bytes)) {
  open();
  find_track();
  list_packets();
}

int Container::read(void* self, uint8_t* buffer, int size) {
  auto& container = *static_cast<Container*>(self);
  const int64_t left = static_cast<int64_t>(container.bytes_.size()) - container.position_;
  const int64_t count = std::min<int64_t>(left, size);
  if (count <= 0) {
    return AVERROR_EOF;
  }
  std::memcpy(buffer, container.bytes_.data() + container.position_, static_cast<size_t>(count));
  container.position_ += count;
  return static_cast<int>(count);
}

int64_t Container::seek(void* self, int64_t offset, int whence) {
  auto& container = *static_cast<Container*>(self);
  const auto size = static_cast<int64_t>(container.bytes_.size());
  if (whence == AVSEEK_SIZE) {
    return size;
  }
  const int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? container.position_ : size;
  if (offset < -base || offset > size - base) {
    return AVERROR(EINVAL);
  }
  container.position_ = base + offset;
  return container.position_;
}

void Container::open() {
  const char* name = demuxer_name(bytes_);
  const AVInputFormat* demuxer = name == nullptr ? nullptr : av_find_input_format(name);
  if (demuxer == nullptr) {
    throw GiveUp{Status::unknown_container};
  }
  auto* buffer = static_cast<uint8_t*>(av_malloc(kBufferBytes));
  io_.reset(avio_alloc_context(&allocated(buffer), kBufferBytes, 0, this, read, nullptr, seek));
  allocated(io_.get());
  AVFormatContext* format = &allocated(avformat_alloc_context());
  format->pb = io_.get();
  format->flags |= AVFMT_FLAG_CUSTOM_IO;
  format->io_open = refuse_to_open;
  format->protocol_whitelist = av_strdup("none");
  const int code = avformat_open_input(&format, nullptr, demuxer, nullptr);  // frees it on failure
  check(code);
  format_.reset(format);
}

void Container::find_track() {
  const int found = av_find_best_stream(format_.get(), AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  check(found, Status::no_video);
  track_ = static_cast<unsigned>(found);
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    format_->streams[i]->discard = i == track_ ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
  }
}

void Container::list_packets() {
  const PacketPtr packet(&allocated(av_packet_alloc()));
  int64_t latest = 0;
  while (next(*packet)) {
    const int64_t pts = shown_at(*packet);
    if (static_cast<int64_t>(packets_.size()) >= kMaxPackets) {
      throw GiveUp{Status::too_long};
    }
    if (pts == AV_NOPTS_VALUE) {
      throw GiveUp{Status::broken};
    }
    packets_.push_back({pts, (packet->flags & AV_PKT_FLAG_KEY) != 0});
    if ((packet->flags & AV_PKT_FLAG_DISCARD) == 0) {
      if (times_.empty() || pts >= latest) {
        latest = pts;
        last_duration_ = std::max<int64_t>(packet->duration, 0);
      }
      times_.push_back(pts);
    }
  }
  if (times_.empty()) {
    throw GiveUp{Status::no_video};
  }
  std::ranges::sort(times_);
  if (seconds() > kMaxSeconds) {
    throw GiveUp{Status::too_long};
  }
}

double Container::seconds() const {
  const double ticks = static_cast<double>(times_.back()) - static_cast<double>(times_.front());
  return ticks * av_q2d(video().time_base);
}

// The last frame included.
double Container::shown_seconds() const {
  return seconds() + static_cast<double>(last_duration_) * av_q2d(video().time_base);
}

double Container::fps() const {
  const double measured = seconds() > 0 ? static_cast<double>(times_.size() - 1) / seconds() : 1;
  const AVRational given = video().avg_frame_rate;
  const double stated = given.num > 0 && given.den > 0 ? av_q2d(given) : measured;
  // Rounded times, and a last frame of unknown length, stay below a factor of 2.
  const double frames = stated * shown_seconds();
  const auto count = static_cast<double>(times_.size());
  const bool contradicted = seconds() > 0 && (frames > 2 * count || frames < count / 2);
  return std::clamp(contradicted ? measured : stated, kLeastFps, kMostFps);
}

// Opened again: not every demuxer finds the way back to the first packet of every file.
void Container::rewind() {
  format_.reset();
  position_ = 0;
  open();
  find_track();
}

bool Container::next(AVPacket& packet) {
  for (;;) {
    av_packet_unref(&packet);
    const int code = av_read_frame(format_.get(), &packet);
    if (code == AVERROR_EOF) {
      return false;
    }
    check(code);
    if (packet.stream_index != static_cast<int>(track_)) {
      continue;
    }
    if ((packet.flags & AV_PKT_FLAG_CORRUPT) != 0) {
      throw GiveUp{Status::broken};
    }
    return true;
  }
}

}  // namespace videokit
