#include "tests/support/picture_file.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "base/file.h"
#include "tests/support/source_dir.h"

namespace whimbrel::test {

std::filesystem::path media_golden(std::string_view name) {
  return source_dir() / "tests/golden/media" / name;
}

std::string read_media_golden(std::string_view name) {
  return read_file(media_golden(name), Fault::io);
}

Image read_ppm(const std::filesystem::path& path) {
  std::istringstream in(read_file(path, Fault::io));
  std::string magic;
  int most = 0;
  Image image;
  in >> magic >> image.width >> image.height >> most;
  in.get();
  image.pixels.resize(static_cast<size_t>(image.height) * image.width * 3);
  in.read(
      reinterpret_cast<char*>(image.pixels.data()),
      static_cast<std::streamsize>(image.pixels.size())
  );
  if (!in || magic != "P6" || most != 255) {
    throw std::runtime_error(path.string() + " is no PPM");
  }
  return image;
}

int largest_difference(const Image& left, const Image& right) {
  if (left.height != right.height || left.width != right.width ||
      left.pixels.size() != right.pixels.size()) {
    return 256;
  }
  int largest = 0;
  for (size_t i = 0; i < left.pixels.size(); ++i) {
    largest = std::max(largest, std::abs(left.pixels[i] - right.pixels[i]));
  }
  return largest;
}

}  // namespace whimbrel::test
