#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace whimbrel::http {

/// The bytes of a file below `folder`. `path` is relative to it, or absolute and begins with it.
/// No link is followed, not even one that stays below, and no `.` or `..` taken: each component is
/// opened by its name in the folder before it, so nothing outside can be reached however files move
/// meanwhile. Throws Error(Fault::input, where): with one text for all that is missing, forbidden,
/// or no regular file, so that nobody learns what is there; with another for more than `max_bytes`.
std::string read_file_below(
    const std::filesystem::path& folder,
    std::string_view path,
    std::string_view where,
    uint64_t max_bytes
);

}  // namespace whimbrel::http
