#pragma once

#include <string_view>

#include "media/encoded_header.h"
#include "media/image.h"

namespace whimbrel {

/// Stored size (an animation's canvas) and EXIF orientation. Throws Error(Fault::input, where) on
/// broken headers and where the file is shorter than it says.
EncodedHeader read_webp_header(std::string_view bytes, std::string_view where);

/// Decodes with libwebp, lossy or lossless; alpha goes on white; an animation gives its first frame
/// on its canvas. `header` is what read_webp_header gave. Throws Error(Fault::input, where) on
/// truncated or corrupt data.
Image decode_webp(std::string_view bytes, const EncodedHeader& header, std::string_view where);

}  // namespace whimbrel
