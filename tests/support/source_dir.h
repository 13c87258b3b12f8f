#pragma once

#include <filesystem>

namespace whimbrel::test {

/// The project's root folder.
std::filesystem::path source_dir();

}  // namespace whimbrel::test
