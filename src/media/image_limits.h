#pragma once

#include <cstdint>
#include <string_view>

#include "media/image.h"
#include "media/image_format.h"

namespace whimbrel {

/// What a picture from outside may be, checked from its header before memory is taken for it.
struct ImageLimits {
  uint64_t max_bytes = uint64_t{32} << 20;  // of the encoded file
  int max_side = 16384;                     // pixels
  int64_t max_pixels = int64_t{64} << 20;   // height * width
  int max_aspect = 200;                     // longer side over shorter side
};

/// The format of a picture, told by its first bytes alone. Throws Error(Fault::input, where) on
/// another one and on a file that is too large.
ImageFormat find_format(std::string_view bytes, std::string_view where, const ImageLimits& limits);

/// Throws Error(Fault::input, where) on a displayed size that is over a limit.
void require_size(Size size, std::string_view where, const ImageLimits& limits);

}  // namespace whimbrel
