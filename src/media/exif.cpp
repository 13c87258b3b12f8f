#include "media/exif.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace whimbrel {

namespace {

constexpr int kUpright = 1;
constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShort = 3;  // TIFF's type of a 16-bit integer
constexpr size_t kEntryBytes = 12;

// Reads integers of a TIFF structure in the byte order that it states.
class TiffReader {
 public:
  TiffReader(std::string_view bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  std::optional<uint32_t> integer(size_t offset, size_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      return std::nullopt;
    }
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t at = offset + (big_endian_ ? i : size - 1 - i);
      value = value << 8 | static_cast<uint8_t>(bytes_[at]);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool big_endian_;
};

std::optional<TiffReader> open_tiff(std::string_view bytes) {
  const std::string_view order = bytes.substr(0, 2);
  if (order != "II" && order != "MM") {
    return std::nullopt;
  }
  const TiffReader tiff(bytes, order == "MM");
  if (tiff.integer(2, 2) != 42U) {
    return std::nullopt;
  }
  return tiff;
}

std::optional<uint32_t> find_orientation(const TiffReader& tiff) {
  const std::optional<uint32_t> directory = tiff.integer(4, 4);
  const std::optional<uint32_t> count = directory ? tiff.integer(*directory, 2) : std::nullopt;
  for (size_t i = 0; i < count.value_or(0); ++i) {
    const size_t entry = *directory + size_t{2} + i * kEntryBytes;
    if (tiff.integer(entry, 2) == kOrientationTag && tiff.integer(entry + 2, 2) == kShort) {
      return tiff.integer(entry + 8, 2);
    }
  }
  return std::nullopt;
}

bool swaps_sides(int orientation) {
  return orientation >= 5;
}

// Where the pixel that is seen at (y, x) is stored; `size` is the stored one.
Size stored_position(int y, int x, Size size, int orientation) {
  const int bottom = size.height - 1;
  const int right = size.width - 1;
  switch (orientation) {
    case 2:
      return {y, right - x};
    case 3:
      return {bottom - y, right - x};
    case 4:
      return {bottom - y, x};
    case 5:
      return {x, y};
    case 6:
      return {bottom - x, y};
    case 7:
      return {bottom - x, right - y};
    case 8:
      return {x, right - y};
    default:
      return {y, x};
  }
}

}  // namespace

int exif_orientation(std::string_view exif) {
  constexpr std::string_view kPrefix("Exif\0\0", 6);
  if (exif.starts_with(kPrefix)) {
    exif.remove_prefix(kPrefix.size());
  }
  const std::optional<TiffReader> tiff = open_tiff(exif);
  const uint32_t value = tiff ? find_orientation(*tiff).value_or(kUpright) : kUpright;
  return value >= 1 && value <= 8 ? static_cast<int>(value) : kUpright;
}

Size upright_size(Size size, int orientation) {
  return swaps_sides(orientation) ? Size{size.width, size.height} : size;
}

Image turn_upright(Image image, int orientation) {
  if (orientation == kUpright) {
    return image;
  }
  const Size stored{image.height, image.width};
  const Size seen = upright_size(stored, orientation);
  Image out{seen.height, seen.width, std::vector<uint8_t>(image.pixels.size())};
  uint8_t* to = out.pixels.data();
  for (int y = 0; y < seen.height; ++y) {
    for (int x = 0; x < seen.width; ++x) {
      const Size from = stored_position(y, x, stored, orientation);
      const size_t index = static_cast<size_t>(from.height) * stored.width + from.width;
      const uint8_t* pixel = image.pixels.data() + index * 3;
      *to++ = pixel[0];
      *to++ = pixel[1];
      *to++ = pixel[2];
    }
  }
  return out;
}

}  // namespace whimbrel
