#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>
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

void handle_interrupts(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
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

}  // namespace whimbrel
