#include "engine/verify_drawings.h"

#include <algorithm>
#include <functional>

namespace whimbrel::verify {

namespace {

/// The colour at a point; both coordinates run from 0 to 1000, so that a drawing has no size.
using Paint = std::function<const Colour&(int y, int x)>;

constexpr int kUnits = 1000;

Image draw(int side, const Paint& paint) {
  Image image{.height = side, .width = side, .pixels = {}};
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const Colour& colour = paint(y * kUnits / side, x * kUnits / side);
      image.pixels.insert(image.pixels.end(), colour.begin(), colour.end());
    }
  }
  return image;
}

bool in_circle(int y, int x) {
  return (y - 260) * (y - 260) + (x - 260) * (x - 260) <= 180 * 180;
}

bool in_square(int y, int x) {
  return y >= 120 && y < 420 && x >= 580 && x < 880;
}

bool in_triangle(int y, int x) {
  return y >= 520 && y < 920 && std::abs(x - 500) * 2 <= y - 520;
}

}  // namespace

Image draw_colour(int side, const Colour& colour) {
  return draw(side, [&colour](int, int) -> const Colour& { return colour; });
}

Image draw_shapes(int side) {
  return draw(side, [](int y, int x) -> const Colour& {
    if (in_circle(y, x)) {
      return kRed;
    }
    if (in_square(y, x)) {
      return kGreen;
    }
    return in_triangle(y, x) ? kBlue : kWhite;
  });
}

}  // namespace whimbrel::verify
