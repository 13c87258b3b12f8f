#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace whimbrel::test {

/// Folder of a small random model of the family, made by tools/make_tiny_models.py with these
/// `--variant`s. Made once a process, gone with it. Throws std::runtime_error when the tool fails.
std::filesystem::path tiny_model(
    std::string_view family, const std::vector<std::string_view>& variants = {}
);

}  // namespace whimbrel::test
