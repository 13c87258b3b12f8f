#include "media/smart_resize.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace whimbrel {

namespace {

constexpr int kMaxAspect = 200;

// Python's round(side / factor) * factor; nearbyint rounds half to even, std::round would not.
int64_t nearest_multiple(int side, int factor) {
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(side) / factor)) * factor;
}

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
  const int64_t height = nearest_multiple(size.height, factor);
  const int64_t width = nearest_multiple(size.width, factor);
  // The rounded area chooses the branch, the original one gives the scale.
  const double area = static_cast<double>(size.height) * size.width;
  if (height * width > max_pixels) {
    const double beta = std::sqrt(area / static_cast<double>(max_pixels));
    return {shrink(size.height, beta, factor), shrink(size.width, beta, factor)};
  }
  if (height * width < min_pixels) {
    const double beta = std::sqrt(static_cast<double>(min_pixels) / area);
    return {grow(size.height, beta, factor), grow(size.width, beta, factor)};
  }
  return {static_cast<int>(height), static_cast<int>(width)};
}

}  // namespace whimbrel
