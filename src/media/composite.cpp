#include "media/composite.h"

#include <cstddef>

namespace whimbrel {

Image composite_on_white(std::span<const uint8_t> rgba, Size size) {
  Image out{size.height, size.width, std::vector<uint8_t>(rgba.size() / 4 * 3)};
  uint8_t* to = out.pixels.data();
  for (size_t pixel = 0; pixel < rgba.size(); pixel += 4) {
    const int alpha = rgba[pixel + 3];
    for (size_t channel = 0; channel < 3; ++channel) {
      const int sum = rgba[pixel + channel] * alpha + 255 * (255 - alpha);
      *to++ = static_cast<uint8_t>((sum + 127) / 255);
    }
  }
  return out;
}

}  // namespace whimbrel
