#pragma once

#include <cstdint>
#include <string>

namespace whimbrel::test {

/// Small files whose headers promise a picture of this size.
std::string png_of(uint32_t height, uint32_t width);
std::string gif_of(uint32_t height, uint32_t width);
std::string webp_of(uint32_t height, uint32_t width);
std::string jpeg_of(uint32_t height, uint32_t width);

/// A progressive JPEG whose first scan stands there `count` times: each is a walk over the whole
/// picture.
std::string jpeg_with_scans(int count);

}  // namespace whimbrel::test
