#pragma once

namespace whimbrel {

/// From here on Ctrl-C (and a polite kill) ends the process at once, with a sentence and exit code
/// 130: for what nothing else can stop, such as waiting for stdin.
void leave_on_interrupt();

/// From here on it is noted instead, for loops that look; a second one ends the process.
void catch_interrupts();

/// Whether one has come.
bool interrupted();

}  // namespace whimbrel
