#pragma once

#include <cstdint>
#include <string_view>

#include "media/image.h"

namespace whimbrel {

/// The longer side of a picture over its shorter one, at most.
constexpr int kMaxAspect = 200;

/// Throws Error(Fault::input, where) unless both sides are at least 1 and the longer one is at most
/// `max_aspect` times the shorter.
void require_aspect(Size size, int max_aspect, std::string_view where);

/// The size to which a picture is resized: both sides multiples of `factor`, the area between
/// `min_pixels` and `max_pixels` where the shape allows it, the aspect kept as far as possible.
/// Equal to smart_resize of Hugging Face's Qwen2-VL image processor in every bit of its float64
/// arithmetic, half-to-even rounding included. `min_pixels` is at least 1.
/// Throws Error(Fault::input, where) when the longer side is over 200 times the shorter one.
Size smart_resize(
    Size size,
    int factor,
    int64_t min_pixels,
    int64_t max_pixels,
    std::string_view where = "picture"
);

/// The same rule where the bounds hold for height x width x `depth` and the volume before is that
/// of `frames` frames. The aspect isn't looked at; sides are at least half a factor.
Size smart_resize_volume(
    Size size, int frames, int64_t depth, int factor, int64_t min_pixels, int64_t max_pixels
);

/// Python's round(value / factor) * factor, half to even.
int64_t nearest_multiple(int value, int factor);

}  // namespace whimbrel
