#pragma once

#include <filesystem>

namespace whimbrel::test {

/// The project's root folder.
std::filesystem::path source_dir();

/// The Python that has the test requirements (tools/requirements-test.txt).
std::filesystem::path python();

}  // namespace whimbrel::test
