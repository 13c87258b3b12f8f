#include "server/handler_pool.h"

#include <utility>

namespace whimbrel::http {

HandlerPool::HandlerPool(int threads, int longest_queue)
    : longest_queue_(static_cast<size_t>(longest_queue)) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { serve(); });
  }
}

HandlerPool::~HandlerPool() {
  stop();
}

bool HandlerPool::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || queue_.size() >= longest_queue_) {
      return false;
    }
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
  return true;
}

void HandlerPool::stop() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(queue_);
  }
  wake_.notify_all();
  for (std::thread& thread : std::exchange(threads_, {})) {
    thread.join();
  }
}

void HandlerPool::serve() {
  while (true) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) {
      return;
    }
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
  }
}

}  // namespace whimbrel::http
