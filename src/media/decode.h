#pragma once

#include <cstdint>
#include <string_view>

#include "media/image.h"

namespace whimbrel {

/// What a picture from outside may be, checked from its header before memory is taken for it.
struct ImageLimits {
  uint64_t max_bytes = uint64_t{32} << 20;  // of the encoded file
  int max_side = 16384;                     // pixels
  int64_t max_pixels = int64_t{64} << 20;   // height * width
  int max_aspect = 200;                     // longer side over shorter side
};

enum class ImageFormat { jpeg, png, webp, gif };

/// "JPEG", "PNG", "WebP" or "GIF".
std::string_view format_name(ImageFormat format);

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
