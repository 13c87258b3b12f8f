#pragma once

#include <string_view>

#include "media/encoded_header.h"
#include "media/image.h"

namespace whimbrel {

/// Stored size and EXIF orientation. Throws Error(Fault::input, where) on broken headers.
EncodedHeader read_jpeg_header(std::string_view bytes, std::string_view where);

/// Decodes with libjpeg: islow DCT, fancy upsampling, as Pillow. Four channels are taken as
/// inverted CMYK or YCCK (Adobe's way, and Pillow's assumption). `header` is what read_jpeg_header
/// gave. Throws Error(Fault::input, where) on truncated or corrupt data.
Image decode_jpeg(std::string_view bytes, const EncodedHeader& header, std::string_view where);

}  // namespace whimbrel
