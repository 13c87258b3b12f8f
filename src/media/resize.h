#pragma once

#include "media/image.h"

namespace whimbrel {

/// Bicubic resize, byte-equal to Pillow's Image.resize(…, BICUBIC): a = -0.5, support widened by
/// the scale when shrinking, weights in 22-bit fixed point, two passes with rounding to 8 bits
/// between: horizontal first, or vertical first where a picture over 100 times as high as wide gets
/// lower. A pass whose dimension stays is skipped. All sides are at least 1.
Image resize_bicubic(const Image& image, int height, int width);

}  // namespace whimbrel
