#include "engine/box_scale.h"

#include <cmath>

namespace whimbrel {

std::optional<BoxScale> box_scale(std::span<const MediaSpan> media, BoxConvention convention) {
  if (media.size() != 1 || media.front().kind != MediaKind::image) {
    return std::nullopt;
  }
  const Patches& patches = media.front().patches;
  const double width = patches.original.width;
  const double height = patches.original.height;
  switch (convention) {
    case BoxConvention::thousandths:
      return BoxScale{.x = width / 1000, .y = height / 1000};
    case BoxConvention::resized_pixels:
      return BoxScale{.x = width / patches.resized.width, .y = height / patches.resized.height};
    case BoxConvention::unknown:
      break;
  }
  return std::nullopt;
}

std::vector<int64_t> to_pixels(const Box& box, const BoxScale& scale) {
  std::vector<int64_t> pixels;
  for (size_t i = 0; i < box.numbers.size(); ++i) {
    pixels.push_back(std::llround(box.numbers[i] * (i % 2 == 0 ? scale.x : scale.y)));
  }
  return pixels;
}

}  // namespace whimbrel
