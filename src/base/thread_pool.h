#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace whimbrel {

/// Threads for kernels: the caller is one of them. Idle ones spin for a moment before they sleep,
/// for a wake-up costs more than a small piece of work takes. One caller at a time.
class ThreadPool {
 public:
  /// At least 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(thread) on every thread, 0 being the caller; returns when all are done. The body
  /// may not throw.
  template <typename Body>
  void run(const Body& body) {
    start({&body, [](const void* function, int thread) {
             (*static_cast<const Body*>(function))(thread);
           }});
  }

  /// Calls body(task, thread) for tasks 0 to count - 1, each thread taking the next one that is
  /// left.
  template <typename Body>
  void parallel_for(int count, const Body& body) {
    std::atomic<int> next = 0;
    run([&](int thread) {
      for (int task = next++; task < count; task = next++) {
        body(task, thread);
      }
    });
  }

 private:
  struct Work {
    const void* function = nullptr;
    void (*call)(const void* function, int thread) = nullptr;
  };

  void start(const Work& work);
  void serve(int thread);
  /// The next round's number, once there is one that is not `seen`.
  uint32_t wait_for_round(uint32_t seen);

  Work work_;
  alignas(64) std::atomic<uint32_t> round_ = 0;
  alignas(64) std::atomic<int> unfinished_ = 0;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace whimbrel
