#include "ops/cpu/attend.h"

namespace whimbrel::ops::cpu {

void AttendWorkspace::reserve_threads(int threads, size_t count) {
  if (threads_.size() < static_cast<size_t>(threads)) {
    threads_.resize(static_cast<size_t>(threads));
  }
  for (Scratch& scratch : threads_) {
    scratch.of<float>(count);
  }
}

std::atomic<int>* AttendWorkspace::counters(size_t count) {
  if (count > counters_count_) {
    counters_ = std::make_unique<std::atomic<int>[]>(count);
    counters_count_ = count;
  }
  for (size_t i = 0; i < count; ++i) {
    counters_[i].store(0, std::memory_order_relaxed);
  }
  return counters_.get();
}

size_t AttendWorkspace::bytes() const {
  size_t bytes = shared_[0].bytes() + shared_[1].bytes();
  for (const Scratch& scratch : threads_) {
    bytes += scratch.bytes();
  }
  return bytes;
}

}  // namespace whimbrel::ops::cpu
