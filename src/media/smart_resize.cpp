#include "media/smart_resize.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace whimbrel {

namespace {

int shrink(int side, double beta, int factor) {
  const int fitted = static_cast<int>(std::floor(side / beta / factor)) * factor;
  return std::max(factor, fitted);
}

int grow(int side, double beta, int factor) {
  return static_cast<int>(std::ceil(side * beta / factor)) * factor;
}

}  // namespace

void require_aspect(Size size, int max_aspect, std::string_view where) {
  const auto [shorter, longer] = std::minmax(size.height, size.width);
  if (shorter < 1 || longer > int64_t{shorter} * max_aspect) {
    throw Error(
        Fault::input,
        where,
        "got {} x {} pixels (height x width), expected a longer side of at most {} times the "
        "shorter; crop the picture",
        size.height,
        size.width,
        max_aspect
    );
  }
}

Size smart_resize(
    Size size, int factor, int64_t min_pixels, int64_t max_pixels, std::string_view where
) {
  require_aspect(size, kMaxAspect, where);
  return smart_resize_volume(size, 1, 1, factor, min_pixels, max_pixels);
}

Size smart_resize_volume(
    Size size, int frames, int64_t depth, int factor, int64_t min_pixels, int64_t max_pixels
) {
  const int64_t height = nearest_multiple(size.height, factor);
  const int64_t width = nearest_multiple(size.width, factor);
  // The rounded volume chooses the branch, the original one gives the scale.
  const double volume = static_cast<double>(frames) * size.height * size.width;
  if (depth * height * width > max_pixels) {
    const double beta = std::sqrt(volume / static_cast<double>(max_pixels));
    return {shrink(size.height, beta, factor), shrink(size.width, beta, factor)};
  }
  if (depth * height * width < min_pixels) {
    const double beta = std::sqrt(static_cast<double>(min_pixels) / volume);
    return {grow(size.height, beta, factor), grow(size.width, beta, factor)};
  }
  return {static_cast<int>(height), static_cast<int>(width)};
}

// nearbyint rounds half to even, std::round would not.
int64_t nearest_multiple(int value, int factor) {
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(value) / factor)) * factor;
}

}  // namespace whimbrel
