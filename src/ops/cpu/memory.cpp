#include "ops/cpu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace whimbrel::ops::cpu {

namespace {

constexpr size_t kLine = 64;
constexpr size_t kRegionBytes = size_t{64} << 20;
constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up(size_t bytes, size_t step) {
  return (bytes + step - 1) / step * step;
}

}  // namespace

/// Pages that nothing was written to take no memory, so the end of a region costs nothing.
class WeightMemory::Region {
 public:
  explicit Region(size_t bytes) : bytes_(round_up(bytes, kHugePage) + kHugePage) {
    start_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start_ == MAP_FAILED) {
      throw Error(
          Fault::memory,
          "weights",
          "got no {} MiB from the system; use a smaller model",
          bytes_ >> 20
      );
    }
#if defined(MADV_HUGEPAGE)
    madvise(start_, bytes_, MADV_HUGEPAGE);  // a wish: without huge pages all works as well
#endif
  }
  ~Region() { munmap(start_, bytes_); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::byte* first_huge_page() const {
    const auto address = reinterpret_cast<uintptr_t>(start_);
    return static_cast<std::byte*>(start_) + (round_up(address, kHugePage) - address);
  }

 private:
  size_t bytes_;
  void* start_;
};

std::byte* WeightMemory::allocate(size_t bytes) {
  bytes = round_up(bytes, kLine);
  if (bytes > left_) {
    const size_t size = round_up(std::max(bytes, kRegionBytes), kHugePage);
    regions_.push_back(std::make_shared<Region>(size));
    free_ = regions_.back()->first_huge_page();
    left_ = size;
  }
  std::byte* piece = free_;
  free_ += bytes;
  left_ -= bytes;
  bytes_ += bytes;
  return piece;
}

}  // namespace whimbrel::ops::cpu
