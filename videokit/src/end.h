#pragma once

#include <unistd.h>

#include "videokit.h"

namespace videokit {

/// Ends the process at once: the sandbox allows no more than that.
[[noreturn]] inline void end(Exit how) {
  _exit(static_cast<int>(how));
}

}  // namespace videokit
