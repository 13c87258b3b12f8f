#include "ops/cpu/workspace.h"

namespace whimbrel::ops::cpu {

void Backlog::add(size_t bytes) {
  std::unique_lock lock(mutex_);
  removed_.wait(lock, [&] { return bytes_ == 0 || bytes_ + bytes <= kMost; });
  bytes_ += bytes;
}

void Backlog::remove(size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    bytes_ -= bytes;
  }
  removed_.notify_all();
}

size_t Workspace::bytes() const {
  size_t bytes = rows.bytes() + experts.bytes() + attention.bytes() + layer_rows.bytes();
  for (const Scratch& tiles : context.tiles) {
    bytes += tiles.bytes();
  }
  return bytes;
}

}  // namespace whimbrel::ops::cpu
