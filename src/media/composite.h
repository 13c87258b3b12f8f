#pragma once

#include <cstdint>
#include <span>

#include "media/image.h"

namespace whimbrel {

/// RGBA of size.height * size.width * 4 on white: (c * a + 255 * (255 - a)) / 255, rounded to
/// nearest (a tie can't occur). Equal to Pillow's paste on a white picture with the alpha as mask.
Image composite_on_white(std::span<const uint8_t> rgba, Size size);

}  // namespace whimbrel
