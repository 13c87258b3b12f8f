#pragma once

#include <string>

#include "media/image.h"

namespace whimbrel {

/// The picture as the bytes of a PNG file, 8-bit RGB: `decode_image` gives back the same pixels.
/// Throws Error(Fault::input) where it has no pixels.
std::string encode_png(const Image& image);

}  // namespace whimbrel
