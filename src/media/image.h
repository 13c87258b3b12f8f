#pragma once

#include <cstdint>
#include <vector>

namespace whimbrel {

/// A picture's extent in pixels; height first, as everywhere in this library.
struct Size {
  int height = 0;
  int width = 0;

  bool operator==(const Size&) const = default;
};

/// A decoded picture: 8-bit RGB, interleaved, rows from the top down,
/// `pixels` of height * width * 3.
struct Image {
  int height = 0;
  int width = 0;
  std::vector<uint8_t> pixels;
};

}  // namespace whimbrel
