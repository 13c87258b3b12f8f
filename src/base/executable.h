#pragma once

#include <filesystem>

namespace whimbrel {

/// The file of the running program, links resolved. Throws Error(Fault::io) where the system
/// doesn't say.
std::filesystem::path executable_path();

}  // namespace whimbrel
