#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "media/image.h"
#include "media/patchify.h"
#include "media/pixel_bounds.h"

namespace whimbrel {

/// A checkpoint's image preprocessing (its preprocessor_config.json), as data.
struct ImageProcessor {
  int patch_size = 0;
  int merge_size = 0;
  int temporal_patch_size = 0;
  int64_t min_pixels = 0;  // areas, whatever a file calls them
  int64_t max_pixels = 0;
  std::array<float, 3> image_mean{};  // of values 0 to 1
  std::array<float, 3> image_std{};
  double rescale_factor = 1.0 / 255.0;

  PatchLayout layout() const { return {patch_size, merge_size, temporal_patch_size}; }
};

/// Numbers in one row of Patches, of three channels.
inline int64_t patch_width(const ImageProcessor& processor) {
  return int64_t{3} * processor.temporal_patch_size * processor.patch_size * processor.patch_size;
}

/// Reads the `image_processor` of processor_config.json where there is one, otherwise
/// preprocessor_config.json (transformers' order). Bounds: min_pixels and max_pixels, then
/// size.shortest_edge and size.longest_edge (areas, despite the names), then `fallback`.
/// Throws Error(Fault::model) that names file and key: no file, a missing or wrong value, no bounds
/// and no fallback, or a step that we don't do (no resize, rescale or normalisation, a filter other
/// than bicubic).
ImageProcessor read_image_processor(
    const std::filesystem::path& folder, const std::optional<PixelBounds>& fallback = std::nullopt
);

/// Normalisation of levels 0 to 255: mean and std divided by the rescale factor first, as
/// transformers' fast processor fuses them.
PixelScale pixel_scale(const ImageProcessor& processor);

/// The size to which a picture of `size` is resized. Throws as smart_resize does.
Size resized_size(Size size, const ImageProcessor& processor, std::string_view where = "picture");

/// smart_resize, bicubic resize on 8 bits, pixel_scale, then patches; a still image fills all
/// temporal slices. Throws Error(Fault::input, where) on an aspect over 200.
Patches preprocess_image(
    const Image& image, const ImageProcessor& processor, std::string_view where = "picture"
);

}  // namespace whimbrel
