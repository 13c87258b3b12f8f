#pragma once

namespace whimbrel {

/// From here on Ctrl-C (and a polite kill) ends the process at once, with a sentence and exit code
/// 130: for what nothing else can stop, such as waiting for stdin.
void leave_on_interrupt();

/// From here on it is noted instead, for loops that look; a second one ends the process.
void catch_interrupts();

/// Whether one has come.
bool interrupted();

/// What came: `stop` is Ctrl-C, `leave` a polite kill.
enum class Interrupt { none, stop, leave };

/// From here on each one is noted, however many come, for a conversation that goes on behind them.
/// Throws Error(Fault::io) where the system gives no pipe.
void note_each_interrupt();

/// What came since the last call, once note_each_interrupt was called; of both, `leave`.
Interrupt take_interrupt();

/// What a wait ended with; `signal` is one of another kind.
enum class Awaited { input, interrupt, signal };

/// Waits until there is something to read from a descriptor, or its end, or until a signal comes.
/// An interrupt goes first and is not taken.
Awaited wait_for_input(int descriptor);

}  // namespace whimbrel
