#pragma once

#include <cstdint>

namespace whimbrel {

/// Areas in pixels between which a picture is resized.
struct PixelBounds {
  int64_t min_pixels = 0;
  int64_t max_pixels = 0;
};

}  // namespace whimbrel
