#pragma once

namespace videokit {

/// Takes from this process what a decoder doesn't need, for good: more memory than 1.5 GiB, more
/// than `cpu_seconds` of time, new file descriptors, and on Linux every system call but those that
/// read, write, and manage memory; any other one kills it. Limits that it was started with and that
/// are lower stay. Ends the process with Exit::no_sandbox where that fails.
/// On other systems than Linux only the limits hold.
void enter_sandbox(unsigned cpu_seconds);

}  // namespace videokit
