#include "media/image_format.h"

#include <array>
#include <cstddef>

#include "media/decode_gif.h"
#include "media/decode_jpeg.h"
#include "media/decode_png.h"
#include "media/decode_webp.h"

namespace whimbrel {

std::string_view format_name(ImageFormat format) {
  constexpr std::array<std::string_view, 4> kNames = {"JPEG", "PNG", "WebP", "GIF"};
  return kNames[static_cast<size_t>(format)];
}

EncodedHeader read_header(ImageFormat format, std::string_view bytes, std::string_view where) {
  switch (format) {
    case ImageFormat::jpeg:
      return read_jpeg_header(bytes, where);
    case ImageFormat::png:
      return read_png_header(bytes, where);
    case ImageFormat::webp:
      return read_webp_header(bytes, where);
    case ImageFormat::gif:
      break;
  }
  return read_gif_header(bytes, where);
}

Image decode_stored(
    ImageFormat format, std::string_view bytes, const EncodedHeader& header, std::string_view where
) {
  switch (format) {
    case ImageFormat::jpeg:
      return decode_jpeg(bytes, header, where);
    case ImageFormat::png:
      return decode_png(bytes, header, where);
    case ImageFormat::webp:
      return decode_webp(bytes, header, where);
    case ImageFormat::gif:
      break;
  }
  return decode_gif(bytes, header, where);
}

}  // namespace whimbrel
