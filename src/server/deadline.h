#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace whimbrel::http {

/// Calls back once after a time, unless it is set anew or cancelled before. On one strand.
class Deadline {
 public:
  explicit Deadline(const boost::asio::any_io_executor& strand) : timer_(strand) {}

  void set(std::chrono::milliseconds time, std::function<void()> passed) {
    timer_.expires_after(time);
    // A timer that has run out already can't be cancelled any more.
    timer_.async_wait([this, round = ++round_, passed = std::move(passed)](const auto& error) {
      if (!error && round == round_) {
        set_ = false;
        passed();
      }
    });
    set_ = true;
  }

  void cancel() {
    ++round_;
    set_ = false;
    timer_.cancel();
  }

  bool is_set() const { return set_; }

 private:
  boost::asio::steady_timer timer_;
  uint64_t round_ = 0;
  bool set_ = false;
};

}  // namespace whimbrel::http
