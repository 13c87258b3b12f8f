#pragma once

// What the program and its video decoder, a process of its own, say to each other over one socket.
// Host byte order: both run on one machine. The program sends a Request and the file's bytes, gets
// a Timeline, sends the number of frames that it wants and their indices, and gets as many frames,
// each a Frame and its pixels. A status other than `done` is the last thing that is said.

#include <cstdint>

namespace videokit {

inline constexpr uint32_t kRequestMagic = 0x51444956;  // "VIDQ"
inline constexpr uint32_t kReplyMagic = 0x52444956;    // "VIDR"

inline constexpr uint64_t kMaxBytes = uint64_t{256} << 20;     // of a file
inline constexpr uint32_t kMaxFrames = 768;                    // that are sent
inline constexpr int64_t kMaxPackets = int64_t{4} << 20;       // of a file's video
inline constexpr double kMaxSeconds = 36000;                   // its duration
inline constexpr uint32_t kMaxSide = 16384;                    // of a frame, in pixels
inline constexpr uint64_t kMaxPixels = uint64_t{8192} * 4352;  // height * width
inline constexpr double kLeastFps = 1e-4;
inline constexpr double kMostFps = 1000;

/// Why a decoder gives up.
enum class Status : uint32_t {
  done = 0,
  unknown_container,  // no MP4, WebM or GIF by its first bytes
  broken,             // data that end early or contradict the format
  no_video,           // no video track
  unknown_codec,      // a codec that isn't on the list
  too_long,           // over kMaxSeconds or kMaxPackets
  too_large,          // over kMaxSide or kMaxPixels
  changing_size,      // frames of different sizes
  unsupported,        // turned by something else than quarters, or mirrored
  no_memory,
  last = no_memory,
};

struct Request {
  uint32_t magic;
  uint32_t reserved;
  uint64_t bytes;
};

struct Timeline {
  uint32_t magic;
  Status status;
  int64_t frames;
  double fps;  // frames a second, on average
};

struct Frame {
  uint32_t magic;
  Status status;
  uint32_t height;  // as displayed
  uint32_t width;   // height * width * 3 bytes of RGB follow
};

static_assert(sizeof(Request) == 16 && sizeof(Timeline) == 24 && sizeof(Frame) == 16);

}  // namespace videokit
