#pragma once

#include "media/image.h"

namespace whimbrel {

/// What an encoded picture says before any pixel is decoded.
struct EncodedHeader {
  Size size;            // as stored, not yet checked against limits
  int orientation = 1;  // EXIF's, 1 to 8
};

}  // namespace whimbrel
