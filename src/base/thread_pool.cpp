#include "base/thread_pool.h"

#include "base/clock.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace whimbrel {

namespace {

constexpr double kSpinMilliseconds = 0.2;
constexpr int kSpinsAClockReading = 256;
constexpr int kSpinsBeforeYield = 2000;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  for (int thread = 1; thread < threads; ++thread) {
    workers_.emplace_back([this, thread] { serve(thread); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

void ThreadPool::start(const Work& work) {
  if (workers_.empty()) {
    work.call(work.function, 0);
    return;
  }
  work_ = work;
  unfinished_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  work.call(work.function, 0);
  for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spins) {
    relax();
    if (spins > kSpinsBeforeYield) {
      std::this_thread::yield();  // with more threads than cores the one waited for may need ours
    }
  }
}

void ThreadPool::serve(int thread) {
  uint32_t round = 0;
  while (true) {
    round = wait_for_round(round);
    if (stopping_) {
      return;
    }
    work_.call(work_.function, thread);
    unfinished_.fetch_sub(1, std::memory_order_release);
  }
}

uint32_t ThreadPool::wait_for_round(uint32_t seen) {
  const Stopwatch watch;
  while (watch.milliseconds() < kSpinMilliseconds) {
    for (int i = 0; i < kSpinsAClockReading; ++i) {
      const uint32_t round = round_.load(std::memory_order_acquire);
      if (round != seen) {
        return round;
      }
      relax();
    }
  }
  round_.wait(seen, std::memory_order_acquire);
  return round_.load(std::memory_order_acquire);
}

}  // namespace whimbrel
