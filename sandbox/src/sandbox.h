#pragma once

#include <cstdint>
#include <string_view>

namespace sandbox {

/// What a decoder may use up.
struct Limits {
  unsigned cpu_seconds = 0;
  uint64_t memory_bytes = 0;  // of address space
};

/// Takes from this process what a decoder doesn't need, for good: more time and memory than
/// `limits`, new file descriptors, and on Linux every system call but those that read, write, and
/// manage memory; any other one kills it. Limits that it was started with and that are lower stay.
/// Ends the process with Exit::no_sandbox where that fails.
/// On other systems than Linux only the limits hold.
void enter_sandbox(const Limits& limits);

#ifdef SANDBOX_BREAKOUT
/// Only of tests' variants of a decoder (tests/sandbox/break_out.cpp).
void try_to_break_out(std::string_view bytes);
#endif

}  // namespace sandbox
