#include "media/image_limits.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/error.h"
#include "media/smart_resize.h"

namespace whimbrel {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kKnown = "a JPEG, PNG, WebP or GIF picture";

// A file format by bytes at a fixed place.
struct Magic {
  std::string_view bytes;
  size_t offset;
  std::string_view name;
};

// Formats that we can't read but can name, so that a user knows what to convert.
constexpr std::array kForeign = {
    Magic{"BM"sv, 0, "a BMP"},
    Magic{"II*\0"sv, 0, "a TIFF"},
    Magic{"MM\0*"sv, 0, "a TIFF"},
    Magic{"ftypavif"sv, 4, "an AVIF"},
    Magic{"ftypheic"sv, 4, "a HEIC"},
    Magic{"ftypmif1"sv, 4, "a HEIF"},
    Magic{"%PDF"sv, 0, "a PDF"},
};

bool matches(std::string_view bytes, const Magic& magic) {
  return bytes.size() >= magic.offset && bytes.substr(magic.offset).starts_with(magic.bytes);
}

bool looks_like_text(std::string_view bytes) {
  return std::ranges::all_of(bytes.substr(0, 512), [](char c) {
    const uint8_t byte = static_cast<uint8_t>(c);
    return (byte >= 0x20 && byte != 0x7f) || (byte >= '\t' && byte <= '\r');
  });
}

std::string_view name_foreign(std::string_view bytes) {
  if (bytes.empty()) {
    return "an empty file";
  }
  for (const Magic& magic : kForeign) {
    if (matches(bytes, magic)) {
      return magic.name;
    }
  }
  return looks_like_text(bytes) ? "text" : "a file of an unknown format";
}

void require_file_size(std::string_view bytes, std::string_view where, const ImageLimits& limits) {
  if (bytes.size() > limits.max_bytes) {
    throw Error(
        Fault::input,
        where,
        "got {} bytes, expected a picture of at most {}; save it smaller",
        bytes.size(),
        limits.max_bytes
    );
  }
}

}  // namespace

ImageFormat find_format(std::string_view bytes, std::string_view where, const ImageLimits& limits) {
  require_file_size(bytes, where, limits);
  if (bytes.starts_with("\xff\xd8\xff"sv)) {
    return ImageFormat::jpeg;
  }
  if (bytes.starts_with("\x89PNG\r\n\x1a\n"sv)) {
    return ImageFormat::png;
  }
  if (matches(bytes, {"RIFF"sv, 0, {}}) && matches(bytes, {"WEBP"sv, 8, {}})) {
    return ImageFormat::webp;
  }
  if (bytes.starts_with("GIF87a"sv) || bytes.starts_with("GIF89a"sv)) {
    return ImageFormat::gif;
  }
  throw Error(Fault::input, where, "got {}, expected {}", name_foreign(bytes), kKnown);
}

void require_size(Size size, std::string_view where, const ImageLimits& limits) {
  const auto [shorter, longer] = std::minmax(size.height, size.width);
  const int64_t pixels = int64_t{size.height} * size.width;
  if (shorter < 1) {
    throw Error(
        Fault::input,
        where,
        "got {} x {} pixels (height x width), expected at least 1 x 1",
        size.height,
        size.width
    );
  }
  if (longer > limits.max_side || pixels > limits.max_pixels) {
    throw Error(
        Fault::input,
        where,
        "got {} x {} pixels (height x width), expected sides of at most {} and at most {} pixels "
        "in all; scale the picture down",
        size.height,
        size.width,
        limits.max_side,
        limits.max_pixels
    );
  }
  require_aspect(size, limits.max_aspect, where);
}

}  // namespace whimbrel
