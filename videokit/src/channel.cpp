#include "channel.h"

#include <unistd.h>

#include <cerrno>

namespace videokit {

namespace {

constexpr int kProgramIsGone = 2;

}  // namespace

void read_all(void* data, size_t size) {
  auto* next = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = read(STDIN_FILENO, next, size);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      _exit(kProgramIsGone);
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
      _exit(kProgramIsGone);
    }
    next += put;
    size -= static_cast<size_t>(put);
  }
}

}  // namespace videokit
