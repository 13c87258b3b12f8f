#include "cli/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace whimbrel {

namespace {

volatile std::sig_atomic_t noted = 0;

void note(int /*signal*/) {
  noted = 1;
}

// Only what POSIX allows in a signal handler.
[[noreturn]] void leave(int /*signal*/) {
  constexpr std::string_view kSentence = "error: [whimbrel] interrupted\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kSentence.data(), kSentence.size());
  _exit(static_cast<int>(Fault::interrupted));
}

/// The letters of signals on their way from the handler to take_interrupt: a pipe, so that one can
/// be waited for together with input, whichever thread the signal went to.
struct SignalPipe {
  int read_end = -1;
  int write_end = -1;
};
SignalPipe signals;

constexpr char kStop = 's';
constexpr char kLeave = 'l';

void pass_on(int signal) {
  const int kept = errno;
  const char letter = signal == SIGTERM ? kLeave : kStop;
  [[maybe_unused]] const ssize_t written = write(signals.write_end, &letter, 1);
  errno = kept;
}

SignalPipe make_signal_pipe() {
  std::array<int, 2> ends = {};
  if (pipe(ends.data()) != 0) {
    throw Error(Fault::io, "run", "making a pipe failed: {}", std::strerror(errno));
  }
  for (const int end : ends) {
    fcntl(end, F_SETFL, O_NONBLOCK);
    fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  return {ends[0], ends[1]};
}

void handle_interrupts(void (*handler)(int), int flags = static_cast<int>(SA_RESETHAND)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // Ignored where it was (nohup).
  struct sigaction before = {};
  if (sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) {
    sigaction(SIGHUP, &action, nullptr);
  }
}

}  // namespace

void leave_on_interrupt() {
  handle_interrupts(leave);
}

void catch_interrupts() {
  handle_interrupts(note);
}

bool interrupted() {
  return noted != 0;
}

void note_each_interrupt() {
  if (signals.read_end < 0) {
    signals = make_signal_pipe();
  }
  handle_interrupts(pass_on, 0);
}

Interrupt take_interrupt() {
  Interrupt came = Interrupt::none;
  char letter = 0;
  while (read(signals.read_end, &letter, 1) == 1) {
    came = letter == kLeave || came == Interrupt::leave ? Interrupt::leave : Interrupt::stop;
  }
  return came;
}

Awaited wait_for_input(int descriptor) {
  std::array<pollfd, 2> ends = {
      pollfd{.fd = signals.read_end, .events = POLLIN, .revents = 0},
      pollfd{.fd = descriptor, .events = POLLIN, .revents = 0},
  };
  if (poll(ends.data(), ends.size(), -1) < 0) {
    return Awaited::signal;
  }
  return ends[0].revents != 0 ? Awaited::interrupt : Awaited::input;
}

}  // namespace whimbrel
