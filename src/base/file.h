#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"

namespace whimbrel {

/// The whole of a regular file. Throws Error(fault) where it is missing, no regular file or larger
/// than `max_bytes`, and Error(Fault::io) where reading fails.
std::string read_file(
    const std::filesystem::path& path, Fault fault, uint64_t max_bytes = uint64_t{256} << 20
);

/// The same, or nothing where the file doesn't exist.
std::optional<std::string> read_file_if_present(
    const std::filesystem::path& path, Fault fault, uint64_t max_bytes = uint64_t{256} << 20
);

}  // namespace whimbrel
