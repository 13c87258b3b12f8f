#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libav.h"
#include "videokit.h"

namespace videokit {

/// A packet of the video track: when its frame is shown, and whether decoding may begin there.
struct PacketMark {
  int64_t pts;
  bool key;
};

/// A video file in memory, its container taken apart: MP4 (or MOV), WebM (or Matroska) or GIF, told
/// by the first bytes. Nothing but these bytes is ever opened. Throws GiveUp.
class Container {
 public:
  explicit Container(std::string bytes);

  const AVStream& video() const { return *format_->streams[track_]; }

  /// The video's packets in the order of the file.
  const std::vector<PacketMark>& packets() const { return packets_; }

  /// The times at which frames are shown, ascending.
  const std::vector<int64_t>& times() const { return times_; }

  /// Frames a second, on average: as the file states, unless its frames' times contradict that.
  double fps() const;

  /// Back to the first packet.
  void rewind();

  /// The next packet of the video track; false behind the last one.
  bool next(AVPacket& packet);

 private:
  static int read(void* self, uint8_t* buffer, int size);
  static int64_t seek(void* self, int64_t offset, int whence);

  void open();
  void find_track();
  void list_packets();
  double seconds() const;
  double shown_seconds() const;

  std::string bytes_;
  int64_t position_ = 0;
  IoPtr io_;
  FormatPtr format_;
  unsigned track_ = 0;
  std::vector<PacketMark> packets_;
  std::vector<int64_t> times_;
  int64_t last_duration_ = 0;  // of the frame that is shown last, where the file tells
};

}  // namespace videokit
