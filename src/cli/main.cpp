#include <fcntl.h>
#include <unistd.h>

#include "cli/app.h"

namespace {

/// A file that is opened while stdin, stdout or stderr is closed would take its place, and MLX
/// takes a weight file with descriptor 0 for a failure. For reading only, so that writing to a
/// closed stdout still fails.
void take_closed_standard_descriptors() {
  int opened = open("/dev/null", O_RDONLY);
  while (opened >= 0 && opened <= STDERR_FILENO) {
    opened = open("/dev/null", O_RDONLY);
  }
  if (opened >= 0) {
    close(opened);
  }
}

}  // namespace

int main(int argc, char** argv) {
  take_closed_standard_descriptors();
  return whimbrel::run_app(argc, argv);
}
