#include "tests/support/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace whimbrel::test {

namespace {

std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;
thread_local bool is_callers = false;

void* allocate(size_t bytes, size_t alignment) {
  if (counting && !is_callers) {
    ++allocations;
  }
  // aligned_alloc wants whole multiples.
  const size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, whole == 0 ? alignment : whole);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

AllocationsElsewhere::AllocationsElsewhere() {
  is_callers = true;
  allocations = 0;
  counting = true;
}

AllocationsElsewhere::~AllocationsElsewhere() {
  counting = false;
  is_callers = false;
}

int AllocationsElsewhere::count() const {
  return allocations;
}

}  // namespace whimbrel::test

// Arrays and those that don't throw come here, too.

void* operator new(size_t bytes) {
  return whimbrel::test::allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}

void* operator new(size_t bytes, std::align_val_t alignment) {
  return whimbrel::test::allocate(bytes, static_cast<size_t>(alignment));
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}

void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
