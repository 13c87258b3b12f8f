#include "media/image_processor.h"

#include "media/processor_config.h"
#include "media/resize.h"
#include "media/smart_resize.h"

namespace whimbrel {

// In float32 and in this order, as torch computes it.
PixelScale pixel_scale(const ImageProcessor& processor) {
  const float levels = static_cast<float>(1.0 / processor.rescale_factor);
  PixelScale scale;
  for (size_t channel = 0; channel < scale.mean.size(); ++channel) {
    scale.mean[channel] = processor.image_mean[channel] * levels;
    scale.std[channel] = processor.image_std[channel] * levels;
  }
  return scale;
}

ImageProcessor read_image_processor(
    const std::filesystem::path& folder, const std::optional<PixelBounds>& fallback
) {
  return parse_processor(find_image_config(folder), fallback);
}

Size resized_size(Size size, const ImageProcessor& processor, std::string_view where) {
  const int factor = processor.layout().factor();
  return smart_resize(size, factor, processor.min_pixels, processor.max_pixels, where);
}

Patches preprocess_image(
    const Image& image, const ImageProcessor& processor, std::string_view where
) {
  const Size original{image.height, image.width};
  const Size size = resized_size(original, processor, where);
  const std::vector<Image> frames(
      processor.temporal_patch_size, resize_bicubic(image, size.height, size.width)
  );
  Patches patches = patchify(frames, processor.layout(), pixel_scale(processor));
  patches.original = original;
  return patches;
}

}  // namespace whimbrel
