#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace whimbrel {

/// How a program ended, and what it wrote.
struct ProgramResult {
  int exit_code = 0;  // 128 and the signal's number where a signal ended it
  std::string out;
  std::string err;
};

/// Runs a program to its end, with this process's environment and nothing on stdin; no shell reads
/// the arguments. Throws Error(Fault::io) where it can't be started.
ProgramResult run_program(
    const std::filesystem::path& program, const std::vector<std::string>& arguments
);

}  // namespace whimbrel
