#pragma once

#include <cstddef>
#include <memory>

namespace whimbrel::ops::cpu {

/// Memory for intermediate rows, which only grows: an operation's next run finds it as large as the
/// largest one before it left it. Contents are lost when it grows.
class Scratch {
 public:
  /// At least `count` numbers at a cache line.
  template <typename T>
  T* of(size_t count) {
    return static_cast<T*>(reserve(count * sizeof(T)));
  }

  size_t bytes() const { return bytes_; }

 private:
  void* reserve(size_t bytes);

  std::unique_ptr<std::byte[]> memory_;
  std::byte* aligned_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace whimbrel::ops::cpu
