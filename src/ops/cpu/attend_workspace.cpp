#include <algorithm>

#include "ops/cpu/attend.h"

namespace whimbrel::ops::cpu {

namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

void AttendWorkspace::Buffer::Free::operator()(float* p) const {
  ::operator delete[](p, kAlignment);
}

float* AttendWorkspace::Buffer::reserve(size_t count) {
  if (count > count_) {
    data_.reset();
    count_ = std::max(count, count_ + count_ / 2);
    data_.reset(static_cast<float*>(::operator new[](count_ * sizeof(float), kAlignment)));
  }
  return data_.get();
}

void AttendWorkspace::reserve_threads(int threads, size_t count) {
  if (threads_.size() < static_cast<size_t>(threads)) {
    threads_.resize(static_cast<size_t>(threads));
  }
  for (Buffer& buffer : threads_) {
    buffer.reserve(count);
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
  for (const Buffer& buffer : threads_) {
    bytes += buffer.bytes();
  }
  return bytes;
}

}  // namespace whimbrel::ops::cpu
