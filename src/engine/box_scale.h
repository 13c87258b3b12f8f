#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/family.h"
#include "models/prompt.h"
#include "text/boxes.h"

namespace whimbrel {

/// Pixels of a picture, as it is seen, that one unit of a box's numbers is.
struct BoxScale {
  double x = 1;
  double y = 1;
};

/// How boxes come onto the picture that they are meant for. Boxes name none, so: nothing where the
/// prompt's media are other than one picture, and where the convention isn't known.
std::optional<BoxScale> box_scale(std::span<const MediaSpan> media, BoxConvention convention);

/// A box's numbers as pixels of the picture, each rounded to the nearest. What lies outside of the
/// picture stays there, and corners stay in their order.
std::vector<int64_t> to_pixels(const Box& box, const BoxScale& scale);

}  // namespace whimbrel
