#pragma once

#include <filesystem>

namespace whimbrel::test {

/// The programs that decode videos and pictures, as this build made them.
std::filesystem::path video_decoder();
std::filesystem::path picture_decoder();

/// Their variants that try to leave their sandbox (tests/sandbox/break_out.cpp).
std::filesystem::path video_breakout();
std::filesystem::path picture_breakout();

}  // namespace whimbrel::test
