#include "media/decode.h"

#include "media/exif.h"

namespace whimbrel {

ImageHeader read_image_header(
    std::string_view bytes, std::string_view where, const ImageLimits& limits
) {
  const ImageFormat format = find_format(bytes, where, limits);
  const EncodedHeader header = read_header(format, bytes, where);
  const Size size = upright_size(header.size, header.orientation);
  require_size(size, where, limits);
  return {format, size.height, size.width};
}

Image decode_image(std::string_view bytes, std::string_view where, const ImageLimits& limits) {
  const ImageFormat format = find_format(bytes, where, limits);
  const EncodedHeader header = read_header(format, bytes, where);
  require_size(upright_size(header.size, header.orientation), where, limits);
  return turn_upright(decode_stored(format, bytes, header, where), header.orientation);
}

}  // namespace whimbrel
