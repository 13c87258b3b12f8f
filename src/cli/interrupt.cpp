#include "cli/interrupt.h"

#include <csignal>

namespace whimbrel {

namespace {

volatile std::sig_atomic_t noted = 0;

void note(int /*signal*/) { noted = 1; }

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return noted != 0; }

}  // namespace whimbrel
