#include "ops/cpu/scratch.h"

#include <cstdint>

namespace whimbrel::ops::cpu {

namespace {

constexpr size_t kLine = 64;

}  // namespace

void* Scratch::reserve(size_t bytes) {
  if (bytes > bytes_) {
    memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes + kLine);
    const auto address = reinterpret_cast<uintptr_t>(memory_.get());
    aligned_ = memory_.get() + (kLine - address % kLine) % kLine;
    bytes_ = bytes;
  }
  return aligned_;
}

}  // namespace whimbrel::ops::cpu
