#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace whimbrel::http {

/// Threads that run handlers, with a bound on how many wait for one.
class HandlerPool {
 public:
  HandlerPool(int threads, int longest_queue);
  ~HandlerPool();
  HandlerPool(const HandlerPool&) = delete;
  HandlerPool& operator=(const HandlerPool&) = delete;

  /// False where the queue is full, or the pool has stopped. The work may not throw.
  bool post(std::function<void()> work);

  /// Drops what waits, and returns when what runs is done. Idempotent.
  void stop();

 private:
  void serve();

  size_t longest_queue_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace whimbrel::http
