// whimbrel-picture: a picture on stdin, its pixels on stdout (src/media/picture_wire.h). A process
// of its own with next to no rights, for a server's pictures come from anywhere; it serves one and
// ends.

#include <new>
#include <string>
#include <vector>

#include "channel.h"
#include "end.h"
#include "media/exif.h"
#include "media/picture_wire.h"
#include "sandbox.h"

#ifndef SANDBOX_CPU_SECONDS
#define SANDBOX_CPU_SECONDS 5
#endif

namespace {

using sandbox::Exit;
using whimbrel::Damage;
using whimbrel::EncodedHeader;
using whimbrel::Image;
using whimbrel::PictureReply;
using whimbrel::PictureRequest;
using whimbrel::Size;

constexpr sandbox::Limits kLimits{
    .cpu_seconds = SANDBOX_CPU_SECONDS, .memory_bytes = uint64_t{1} << 30
};

constexpr const char* kWhere = "picture";  // nobody reads it: a damage is told by its number

void say_size(Size size) {
  sandbox::write_value(
      PictureReply{
          .height = static_cast<uint32_t>(size.height), .width = static_cast<uint32_t>(size.width)
      }
  );
}

std::string read_file_bytes(const PictureRequest& request) {
  const bool known = request.magic == whimbrel::kPictureRequestMagic &&
                     request.format <= whimbrel::ImageFormat::last;
  if (!known || request.bytes > kLimits.memory_bytes) {
    sandbox::end(Exit::bad_request);
  }
  std::string bytes(request.bytes, '\0');
  sandbox::read_all(bytes.data(), bytes.size());
  return bytes;
}

// Whether the size is one that the program wants to see: it knows the limits.
void wait_for_go() {
  if (sandbox::read_value<uint32_t>() != whimbrel::kDecode) {
    sandbox::end(Exit::bad_request);
  }
}

void serve() {
  const auto request = sandbox::read_value<PictureRequest>();
  const std::string bytes = read_file_bytes(request);
#ifdef SANDBOX_BREAKOUT
  sandbox::try_to_break_out(bytes);
#endif
  const EncodedHeader header = whimbrel::read_header(request.format, bytes, kWhere);
  say_size(whimbrel::upright_size(header.size, header.orientation));
  wait_for_go();
  const Image image = whimbrel::turn_upright(
      whimbrel::decode_stored(request.format, bytes, header, kWhere), header.orientation
  );
  say_size({image.height, image.width});
  sandbox::write_all(image.pixels.data(), image.pixels.size());
}

void report(Damage damage) {
  sandbox::write_value(PictureReply{.damage = damage});
}

}  // namespace

int main() {
  sandbox::enter_sandbox(kLimits);
  try {
    serve();
  } catch (const whimbrel::DamagedPicture& picture) {
    report(picture.damage());
  } catch (const std::bad_alloc&) {
    report(Damage::no_memory);
  }
  sandbox::end(Exit::done);
}
