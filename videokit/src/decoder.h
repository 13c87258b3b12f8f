#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "container.h"
#include "libav.h"

namespace videokit {

/// Decodes a container's video on one thread: H.264, H.265, VP8, VP9, AV1 or GIF. Throws GiveUp.
class Decoder {
 public:
  explicit Decoder(Container& container);

  /// Gives the frames that are shown at `times`, ascending, one by one to `send`. A frame stands
  /// for all times up to its own that no earlier one stood for, the last one for all that are left.
  void decode(const std::vector<int64_t>& times, const std::function<void(const AVFrame&)>& send);

 private:
  void open();
  size_t key_before(int64_t time, size_t from) const;
  void skip_to_key(int64_t time);
  bool feed();
  bool next_frame();

  Container& container_;
  CodecPtr codec_;
  PacketPtr packet_;
  FramePtr frame_;
  size_t fed_ = 0;      // packets that the codec got, or that were skipped
  bool ended_ = false;  // all of them
};

}  // namespace videokit
