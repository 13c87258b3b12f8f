#pragma once

namespace whimbrel {

/// From here on Ctrl-C (and a polite kill) is noted instead of ending the process; a second one ends
/// it.
void catch_interrupts();

/// Whether one has come.
bool interrupted();

}  // namespace whimbrel
