#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "media/image.h"

namespace whimbrel::test {

/// tests/golden/media/`name`.
std::filesystem::path media_golden(std::string_view name);

/// The bytes of tests/golden/media/`name`.
std::string read_media_golden(std::string_view name);

/// A binary PPM of 8 bits, as tools/make_media_golden.py writes it.
Image read_ppm(const std::filesystem::path& path);

/// The largest difference of two levels; 256 where the sizes differ.
int largest_difference(const Image& left, const Image& right);

}  // namespace whimbrel::test
