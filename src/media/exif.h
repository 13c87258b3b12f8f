#pragma once

#include <string_view>

#include "media/image.h"

namespace whimbrel {

/// The orientation, 1 to 8, in an EXIF block (a TIFF structure, with or without "Exif\0\0" ahead).
/// A block that is broken or states no valid orientation gives 1, upright: it is a remark beside
/// the picture, and readers of pictures treat it so.
int exif_orientation(std::string_view exif);

/// The size after turn_upright.
Size upright_size(Size size, int orientation);

/// The picture as it is to be seen, given as stored.
Image turn_upright(Image image, int orientation);

}  // namespace whimbrel
