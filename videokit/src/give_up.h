#pragma once

#include "videokit.h"

namespace videokit {

/// Why decoding ends early. Caught once, in main.
struct GiveUp {
  Status status;
};

/// FFmpeg's error code as a status; `status` for all but a lack of memory.
inline void check(int code, Status status = Status::broken) {
  constexpr int kNoMemory = -12;  // AVERROR(ENOMEM)
  if (code < 0) {
    throw GiveUp{code == kNoMemory ? Status::no_memory : status};
  }
}

template <typename T>
T& allocated(T* pointer) {
  if (pointer == nullptr) {
    throw GiveUp{Status::no_memory};
  }
  return *pointer;
}

}  // namespace videokit
