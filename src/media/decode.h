#pragma once

#include <string_view>

#include "media/image.h"
#include "media/image_limits.h"

namespace whimbrel {

/// What a picture's header says; the size is the one displayed, with EXIF orientation applied.
struct ImageHeader {
  ImageFormat format = ImageFormat::png;
  int height = 0;
  int width = 0;
};

/// Reads format and size without decoding. `where` names the picture in error texts.
/// Throws Error(Fault::input) on another format, a broken header, or an exceeded limit.
ImageHeader read_image_header(
    std::string_view bytes, std::string_view where, const ImageLimits& limits = {}
);

/// Decodes a JPEG, PNG, WebP or GIF (told by its first bytes, never by a name) to RGB.
/// - EXIF orientation is applied (not an orientation that only XMP states).
/// - Transparency is composited on white: (c * a + 255 * (255 - a)) / 255, rounded to nearest.
///   transformers' convert("RGB") drops alpha instead, and shows what lies hidden under it.
/// - Grey is replicated; CMYK becomes (255 - C) * (255 - K) / 255 and so on, as in Pillow.
/// - 16-bit channels are divided by 257 and rounded. Colour profiles are ignored, as in Pillow.
/// - Animations give their first frame; what it leaves uncovered of the canvas is transparent.
/// Throws Error(Fault::input) as read_image_header does, and on truncated or corrupt data:
/// a part of a picture is never returned.
Image decode_image(std::string_view bytes, std::string_view where, const ImageLimits& limits = {});

}  // namespace whimbrel
