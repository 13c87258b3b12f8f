// whimbrel-video: a video file on stdin, the frames that are asked for on stdout (videokit.h). A
// process of its own with next to no rights, for videos come from anywhere and their decoders are
// large; it serves one file and ends.

#include <cstdarg>
#include <new>
#include <string>
#include <string_view>

#include "channel.h"
#include "container.h"
#include "decoder.h"
#include "end.h"
#include "give_up.h"
#include "rgb.h"
#include "sandbox.h"
#include "videokit.h"

#ifndef SANDBOX_CPU_SECONDS
#define SANDBOX_CPU_SECONDS 300
#endif

namespace videokit {

namespace {

using sandbox::end;
using sandbox::Exit;
using sandbox::read_all;
using sandbox::read_value;
using sandbox::write_all;
using sandbox::write_value;

constexpr sandbox::Limits kLimits{
    .cpu_seconds = SANDBOX_CPU_SECONDS, .memory_bytes = uint64_t{1536} << 20
};

std::string read_file_bytes() {
  const auto request = read_value<Request>();
  if (request.magic != kRequestMagic || request.bytes > kMaxBytes) {
    end(Exit::bad_request);
  }
  std::string bytes(request.bytes, '\0');
  read_all(bytes.data(), bytes.size());
  return bytes;
}

// Times of the frames that the program wants.
std::vector<int64_t> read_wanted(const std::vector<int64_t>& times) {
  const auto count = read_value<uint32_t>();
  if (count < 1 || count > kMaxFrames) {
    end(Exit::bad_request);
  }
  std::vector<int64_t> wanted;
  int64_t before = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const auto index = read_value<int64_t>();
    if (index < before || index >= static_cast<int64_t>(times.size())) {
      end(Exit::bad_request);
    }
    wanted.push_back(times[static_cast<size_t>(index)]);
    before = index;
  }
  return wanted;
}

void send(const Rgb& rgb) {
  write_value(Frame{kReplyMagic, Status::done, rgb.height, rgb.width});
  write_all(rgb.pixels.data(), rgb.pixels.size());
}

/// Whether the Timeline was sent: what a failure is told in.
bool timeline_is_sent = false;

void serve() {
  std::string bytes = read_file_bytes();
#ifdef SANDBOX_BREAKOUT
  sandbox::try_to_break_out(bytes);
#endif
  Container container(std::move(bytes));
  Decoder decoder(container);
  RgbConverter converter(container.video());
  const auto frames = static_cast<int64_t>(container.times().size());
  write_value(Timeline{kReplyMagic, Status::done, frames, container.fps()});
  timeline_is_sent = true;
  decoder.decode(read_wanted(container.times()), [&converter](const AVFrame& frame) {
    send(converter.convert(frame));
  });
}

void report(Status status) {
  if (timeline_is_sent) {
    write_value(Frame{kReplyMagic, status, 0, 0});
  } else {
    write_value(Timeline{kReplyMagic, status, 0, 0});
  }
}

void be_silent(void*, int, const char*, va_list) {}

}  // namespace

static void decode_one_video() {
  av_log_set_callback(be_silent);
  sandbox::enter_sandbox(kLimits);
  try {
    serve();
  } catch (const GiveUp& reason) {
    report(reason.status);
  } catch (const std::bad_alloc&) {
    report(Status::no_memory);
  }
  end(Exit::done);
}

}  // namespace videokit

int main() {
  videokit::decode_one_video();
}
