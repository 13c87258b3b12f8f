#include "media/picture_decoder.h"

#include <limits>
#include <string>

#include "media/picture_wire.h"

namespace whimbrel {

namespace fs = std::filesystem;

fs::path find_picture_decoder() {
  return find_decoder("whimbrel-picture");
}

Size read_picture_size(const ByteSource& source, ImageFormat format, std::string_view where) {
  PictureReply reply;
  source(&reply, sizeof reply);
  constexpr uint32_t kMost = std::numeric_limits<int>::max();
  const bool valid = reply.magic == kPictureReplyMagic && reply.damage <= Damage::last &&
                     reply.height <= kMost && reply.width <= kMost;
  if (!valid || reply.damage != Damage::none) {
    throw_damaged(valid ? reply.damage : Damage::corrupt, format, where);
  }
  return {static_cast<int>(reply.height), static_cast<int>(reply.width)};
}

Image decode_image_apart(
    const fs::path& decoder,
    std::string_view bytes,
    std::string_view where,
    const ImageLimits& limits,
    const Patience& patience
) {
  const ImageFormat format = find_format(bytes, where, limits);
  DecoderProcess process(decoder, {"picture", std::string(where), patience});
  const ByteSource replies = [&process](void* data, size_t size) { process.receive(data, size); };
  const PictureRequest request{.format = format, .bytes = bytes.size()};
  process.send(&request, sizeof request);
  process.send(bytes.data(), bytes.size());
  const Size size = read_picture_size(replies, format, where);
  require_size(size, where, limits);
  process.send(&kDecode, sizeof kDecode);
  if (read_picture_size(replies, format, where) != size) {
    throw_damaged(Damage::corrupt, format, where);
  }
  Image image{size.height, size.width, {}};
  image.pixels.resize(static_cast<size_t>(size.height) * size.width * 3);
  process.receive(image.pixels.data(), image.pixels.size());
  return image;
}

}  // namespace whimbrel
