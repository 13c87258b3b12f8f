#pragma once

#include <array>
#include <cstdint>

#include "media/image.h"

namespace whimbrel::verify {

using Colour = std::array<uint8_t, 3>;

inline constexpr Colour kRed = {200, 40, 40};
inline constexpr Colour kGreen = {40, 160, 70};
inline constexpr Colour kBlue = {40, 80, 200};
inline constexpr Colour kWhite = {255, 255, 255};

/// A square picture of one colour.
Image draw_colour(int side, const Colour& colour);

/// A red circle, a green square and a blue triangle on white.
Image draw_shapes(int side);

}  // namespace whimbrel::verify
