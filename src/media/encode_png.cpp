#include "media/encode_png.h"

#include <png.h>

#include "base/error.h"

namespace whimbrel {

std::string encode_png(const Image& image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = PNG_FORMAT_RGB;
  std::string bytes;
  // The first call says how many bytes the second one writes.
  for (const bool write : {false, true}) {
    png_alloc_size_t size = bytes.size();
    void* to = write ? bytes.data() : nullptr;
    if (png_image_write_to_memory(&header, to, &size, 0, image.pixels.data(), 0, nullptr) == 0) {
      throw Error(
          Fault::input,
          "picture",
          "got {} x {} pixels that can't be written as PNG: {}",
          image.width,
          image.height,
          header.message
      );
    }
    bytes.resize(size);
  }
  return bytes;
}

}  // namespace whimbrel
