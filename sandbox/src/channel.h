#pragma once

#include <cstddef>
#include <string>

namespace sandbox {

/// The socket to the program: what it sends comes from file descriptor 0, answers go to 1. Both
/// end the process where the program is gone.
void read_all(void* data, size_t size);
void write_all(const void* data, size_t size);

template <typename T>
T read_value() {
  T value;
  read_all(&value, sizeof value);
  return value;
}

template <typename T>
void write_value(const T& value) {
  write_all(&value, sizeof value);
}

}  // namespace sandbox
