#pragma once

#include <string_view>

#include "media/encoded_header.h"
#include "media/image.h"

namespace whimbrel {

/// Size of the canvas, which is widened where the first frame reaches beyond it, as in Pillow.
/// Throws Error(Fault::input, where) on broken headers.
EncodedHeader read_gif_header(std::string_view bytes, std::string_view where);

/// Decodes the first frame with giflib, on its canvas; transparent and uncovered pixels are white.
/// `header` is what read_gif_header gave.
/// Throws Error(Fault::input, where) on truncated or corrupt data.
Image decode_gif(std::string_view bytes, const EncodedHeader& header, std::string_view where);

}  // namespace whimbrel
