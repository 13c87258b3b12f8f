#pragma once

#include <string_view>

#include "media/encoded_header.h"
#include "media/image.h"

namespace whimbrel {

/// Stored size and EXIF orientation (eXIf). Throws Error(Fault::input, where) on broken headers.
EncodedHeader read_png_header(std::string_view bytes, std::string_view where);

/// Decodes with libpng: palette, 1 to 16 bits, tRNS, interlace; alpha goes on white. Chunks beside
/// the picture are skipped, not parsed. `header` is what read_png_header gave.
/// Throws Error(Fault::input, where) on truncated or corrupt data.
Image decode_png(std::string_view bytes, const EncodedHeader& header, std::string_view where);

}  // namespace whimbrel
