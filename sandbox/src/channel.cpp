#include "channel.h"

#include <unistd.h>

#include <cerrno>

#include "end.h"

namespace sandbox {

void read_all(void* data, size_t size) {
  auto* next = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = read(STDIN_FILENO, next, size);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      end(Exit::program_is_gone);
    }
    next += got;
    size -= static_cast<size_t>(got);
  }
}

void write_all(const void* data, size_t size) {
  const auto* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t put = write(STDOUT_FILENO, next, size);
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put <= 0) {
      end(Exit::program_is_gone);
    }
    next += put;
    size -= static_cast<size_t>(put);
  }
}

}  // namespace sandbox
