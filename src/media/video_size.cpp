#include "media/video_size.h"

#include <algorithm>

#include "media/smart_resize.h"

namespace whimbrel {

namespace {

constexpr int64_t kFrameUnits = 768;          // merged units of the largest frame
constexpr double kVideoUnits = 128000 * 0.9;  // and of a whole video, over its temporal patches

// max_pixels of one frame. A fraction of a pixel is dropped, where Python keeps it.
int64_t frame_bound(int frames, const PatchLayout& layout, const PixelBounds& bounds) {
  const int64_t unit = int64_t{layout.factor()} * layout.factor();
  const double share =
      kVideoUnits * static_cast<double>(unit) / frames * layout.temporal_patch_size;
  const int64_t cap = std::min(kFrameUnits * unit, static_cast<int64_t>(share));
  const int64_t floor = static_cast<int64_t>(static_cast<double>(bounds.min_pixels) * 1.05);
  return std::min(bounds.max_pixels, std::max(cap, floor));
}

// transformers first brings a side under the factor up to it, cutting fractions off.
Size at_least_one_unit(Size size, int factor) {
  if (size.height >= factor && size.width >= factor) {
    return size;
  }
  const double height = size.height;
  const double width = size.width;
  const double scale = std::max(factor / height, factor / width);
  return {static_cast<int>(height * scale), static_cast<int>(width * scale)};
}

Size volume_size(Size given, int frames, const PatchLayout& layout, const PixelBounds& bounds) {
  const Size size = at_least_one_unit(given, layout.factor());
  const int64_t depth = nearest_multiple(frames, layout.temporal_patch_size);
  return smart_resize_volume(
      size, frames, depth, layout.factor(), bounds.min_pixels, bounds.max_pixels
  );
}

}  // namespace

Size video_frame_size(
    Size size,
    int frames,
    const PatchLayout& layout,
    const PixelBounds& bounds,
    VideoSizing sizing,
    std::string_view where
) {
  require_aspect(size, kMaxAspect, where);
  const int shown = std::max(frames, layout.temporal_patch_size);
  if (sizing == VideoSizing::per_video) {
    return volume_size(size, shown, layout, bounds);
  }
  const int64_t max_pixels = frame_bound(shown, layout, bounds);
  return smart_resize(size, layout.factor(), bounds.min_pixels, max_pixels, where);
}

}  // namespace whimbrel
