#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/error.h"
#include "media/decode.h"

namespace {

constexpr whimbrel::ImageLimits kLimits{
    .max_bytes = 1 << 20, .max_side = 2048, .max_pixels = 1 << 18, .max_aspect = 200
};

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

uint32_t crc32(std::span<const uint8_t> bytes) {
  uint32_t crc = 0xffffffff;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
    }
  }
  return ~crc;
}

// A changed PNG would otherwise end at its first checksum.
void repair_png_checksums(std::span<uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with("\x89PNG\r\n\x1a\n")) {
    return;
  }
  bytes = bytes.subspan(8);
  while (bytes.size() >= 12) {
    const size_t length = std::min<size_t>(big_endian(bytes.data()), bytes.size() - 12);
    const uint32_t crc = crc32(bytes.subspan(4, length + 4));
    for (size_t i = 0; i < 4; ++i) {
      bytes[length + 8 + i] = static_cast<uint8_t>(crc >> (24 - 8 * i));
    }
    bytes = bytes.subspan(length + 12);
  }
}

}  // namespace

// libFuzzer's own mutation, which the custom one builds on.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(
    uint8_t* data, size_t size, size_t max_size, unsigned int seed
) {
  const size_t changed = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 != 0) {
    repair_png_checksums({data, changed});
  }
  return changed;
}

// Whatever the bytes: a whole picture of the size that the header says, or an Error for the user.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const whimbrel::ImageHeader header = whimbrel::read_image_header(bytes, "fuzz", kLimits);
    require(int64_t{header.height} * header.width <= kLimits.max_pixels);
    const whimbrel::Image image = whimbrel::decode_image(bytes, "fuzz", kLimits);
    require(image.height == header.height && image.width == header.width);
    require(image.pixels.size() == static_cast<size_t>(image.height) * image.width * 3);
  } catch (const whimbrel::Error& error) {
    require(error.fault() == whimbrel::Fault::input);
  }
  return 0;
}
