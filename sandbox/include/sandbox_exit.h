#pragma once

namespace sandbox {

/// How a decoder's process ends where it says nothing.
enum class Exit : int {
  done = 0,
  program_is_gone = 2,  // the other end of the socket is closed
  no_sandbox = 3,       // the system doesn't let it give up its rights
  bad_request = 4,      // a mistake of the program's
};

}  // namespace sandbox
