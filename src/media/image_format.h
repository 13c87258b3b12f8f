#pragma once

#include <cstdint>
#include <string_view>

#include "media/encoded_header.h"
#include "media/image.h"

namespace whimbrel {

enum class ImageFormat : uint32_t { jpeg, png, webp, gif, last = gif };

/// "JPEG", "PNG", "WebP" or "GIF".
std::string_view format_name(ImageFormat format);

/// Stored size and orientation of a picture of this format. Throws Error(Fault::input, where) on a
/// broken header.
EncodedHeader read_header(ImageFormat format, std::string_view bytes, std::string_view where);

/// Decodes a picture of this format, whose header is what read_header gave: as it is stored, not
/// yet turned upright. Throws Error(Fault::input, where) on truncated or corrupt data.
Image decode_stored(
    ImageFormat format, std::string_view bytes, const EncodedHeader& header, std::string_view where
);

}  // namespace whimbrel
