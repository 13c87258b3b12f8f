#pragma once

#include <filesystem>

namespace whimbrel::test {

/// The program that decodes videos, as this build made it.
std::filesystem::path video_helper();

/// Its variant that tries to leave its sandbox (tests/videokit/break_out.cpp).
std::filesystem::path breakout_helper();

}  // namespace whimbrel::test
