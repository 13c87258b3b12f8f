#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"

namespace whimbrel {

/// Two builds of whimbrel on the same cells.
struct AgainstOptions {
  std::filesystem::path binary;        // the other build
  int rounds = 4;                      // A B B A each, one process a letter
  bool self = false;                   // two binaries of one build are wanted
  std::vector<std::string> arguments;  // of `bench`, for both, without -o and --control
};

/// Runs each once, which is thrown away (files come into memory), then A A A A, which shows what
/// differs by chance alone, then the rounds; A is this program.
/// Throws Error(Fault::usage) where both are one build, where the other is no whimbrel that can
/// bench, or where a run fails, with its sentence.
Json bench_against(const AgainstOptions& options);

/// A table for people.
std::string against_text(const Json& comparison);

/// Throws Error(Fault::check) where a control didn't do as it must: then the table says nothing.
void require_controls(const Json& comparison);

}  // namespace whimbrel
