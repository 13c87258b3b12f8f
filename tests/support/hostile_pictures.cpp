#include "tests/support/hostile_pictures.h"

#include "tests/support/picture_file.h"

namespace whimbrel::test {

namespace {

using namespace std::string_literals;

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(value >> shift & 0xff);
  }
  return bytes;
}

std::string little_endian(uint32_t value, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) {
    bytes += static_cast<char>(value >> (8 * i) & 0xff);
  }
  return bytes;
}

}  // namespace

std::string png_of(uint32_t height, uint32_t width) {
  return "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"s + big_endian(width) + big_endian(height) +
         "\x08\x02\0\0\0\0\0\0\0"s + std::string(100, '\0');
}

std::string gif_of(uint32_t height, uint32_t width) {
  return "GIF89a" + little_endian(width, 2) + little_endian(height, 2) +
         "\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\0;"s;
}

std::string webp_of(uint32_t height, uint32_t width) {
  const std::string vp8x =
      "WEBPVP8X\x0a\0\0\0\x02\0\0\0"s + little_endian(width - 1, 3) + little_endian(height - 1, 3);
  return "RIFF" + little_endian(static_cast<uint32_t>(vp8x.size()), 4) + vp8x;
}

std::string jpeg_of(uint32_t height, uint32_t width) {
  std::string bytes = read_media_golden("decode/jpeg_444.jpg");
  const size_t frame = bytes.find("\xff\xc0");
  return bytes.replace(frame + 5, 4, big_endian(height << 16 | width));
}

std::string jpeg_with_scans(int count) {
  const std::string bytes = read_media_golden("decode/jpeg_progressive.jpg");
  const size_t first = bytes.find("\xff\xda");
  size_t end = first + 2;
  while (bytes[end] != '\xff' || bytes[end + 1] == '\0') {
    ++end;
  }
  std::string out = bytes.substr(0, first);
  for (int i = 0; i < count; ++i) {
    out += bytes.substr(first, end - first);
  }
  return out + bytes.substr(end);
}

}  // namespace whimbrel::test
