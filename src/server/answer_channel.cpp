#include "server/answer_channel.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace whimbrel::http {

namespace {

constexpr size_t kMostIgnored = 16;
constexpr size_t kLongestIgnored = 64;
constexpr const char* kMore = "...";

/// On both sides of the socket: neither trusts what it is sent.
std::vector<std::string> cut(std::vector<std::string> names) {
  if (names.size() > kMostIgnored) {
    names.resize(kMostIgnored);
    names.emplace_back(kMore);
  }
  for (std::string& name : names) {
    if (name.size() > kLongestIgnored) {
      name = name.substr(0, kLongestIgnored) + kMore;
    }
  }
  return names;
}

}  // namespace

AnswerChannel::AnswerChannel(ErrorShape shape, std::function<void()> wake)
    : shape_(shape), wake_(std::move(wake)) {}

void AnswerChannel::require(State state) const {
  if (state_ != state) {
    throw std::logic_error(
        state == State::open ? "[exchange] got a second answer, expected one"
                             : "[exchange] got a piece of a stream, expected it in a stream"
    );
  }
}

/// Once for whatever is given until it is taken.
void AnswerChannel::wake(std::unique_lock<std::mutex> lock) {
  const bool needed = !dead_ && !woken_;
  woken_ = woken_ || needed;
  lock.unlock();
  if (needed) {
    wake_();
  }
}

void AnswerChannel::note_ignored(std::vector<std::string> names) {
  const std::lock_guard lock(mutex_);
  ignored_ = cut(std::move(names));
}

void AnswerChannel::respond(Response response) {
  std::unique_lock lock(mutex_);
  require(State::open);
  if (!response.ignored.empty()) {
    ignored_ = cut(std::move(response.ignored));
  }
  state_ = State::ended;
  failure_ = response.failure;
  output_.response = std::move(response);
  output_.finished = true;
  wake(std::move(lock));
}

void AnswerChannel::start_stream(StreamHead head) {
  std::unique_lock lock(mutex_);
  require(State::open);
  if (!head.ignored.empty()) {
    ignored_ = cut(std::move(head.ignored));
  }
  state_ = State::streaming;
  output_.stream = std::move(head);
  wake(std::move(lock));
}

void AnswerChannel::write(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  require(State::streaming);
  if (!dead_) {
    output_.bytes.append(bytes);
  }
  wake(std::move(lock));
}

void AnswerChannel::finish(std::string failure) {
  std::unique_lock lock(mutex_);
  require(State::streaming);
  state_ = State::ended;
  failure_ = std::move(failure);
  output_.finished = true;
  wake(std::move(lock));
}

void AnswerChannel::fail(const ApiError& error, std::string failure) {
  std::unique_lock lock(mutex_);
  if (dead_ || state_ == State::ended) {
    return;
  }
  if (state_ == State::open) {
    output_.response = error_response(error, shape_);
    output_.finished = true;
  } else {
    output_.broken = true;
  }
  state_ = State::ended;
  failure_ = std::move(failure);
  wake(std::move(lock));
}

void AnswerChannel::on_close(std::function<void(CloseReason)> callback) {
  std::unique_lock lock(mutex_);
  if (detached_) {
    return;
  }
  callbacks_.push_back(std::move(callback));
  if (closed_) {
    call_back(std::move(lock), *closed_);
  }
}

bool AnswerChannel::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_.has_value() || detached_;
}

bool AnswerChannel::begin() {
  const std::lock_guard lock(mutex_);
  begun_ = !closed_;
  return begun_;
}

bool AnswerChannel::begun() const {
  const std::lock_guard lock(mutex_);
  return begun_;
}

AnswerChannel::Output AnswerChannel::take(size_t most) {
  const std::lock_guard lock(mutex_);
  Output taken;
  taken.response = std::exchange(output_.response, std::nullopt);
  taken.stream = std::exchange(output_.stream, std::nullopt);
  if (output_.bytes.size() <= most) {
    taken.bytes = std::exchange(output_.bytes, {});
  } else {
    taken.bytes = output_.bytes.substr(0, most);
    output_.bytes.erase(0, most);
  }
  taken.finished = output_.finished && output_.bytes.empty();
  taken.broken = output_.broken && output_.bytes.empty();
  return taken;
}

size_t AnswerChannel::waiting() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  return output_.bytes.size();
}

std::string AnswerChannel::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::vector<std::string> AnswerChannel::ignored() const {
  const std::lock_guard lock(mutex_);
  return ignored_;
}

/// An exception here would end the thread that serves connections.
void AnswerChannel::call_back(std::unique_lock<std::mutex> lock, CloseReason reason) {
  const auto callbacks = std::exchange(callbacks_, {});
  lock.unlock();
  for (const auto& callback : callbacks) {
    try {
      callback(reason);
    } catch (const std::exception& exception) {
      const std::lock_guard again(mutex_);
      failure_ = exception.what();
    }
  }
}

void AnswerChannel::close(CloseReason reason) {
  std::unique_lock lock(mutex_);
  if (detached_ || closed_) {
    return;
  }
  if (reason == CloseReason::server_stops) {
    call_back(std::move(lock), reason);
    lock = std::unique_lock(mutex_);
    if (state_ == State::open) {
      output_.response = error_response(
          {.kind = ErrorKind::unavailable,
           .message = "the server stops; try again later",
           .retry_after = 1},
          shape_
      );
      output_.finished = true;
    }
    output_.broken = state_ == State::streaming;
  }
  closed_ = reason;
  dead_ = true;
  call_back(std::move(lock), reason);
}

void AnswerChannel::detach() {
  std::vector<std::function<void(CloseReason)>> dropped;  // behind the lock: they may hold much
  const std::lock_guard lock(mutex_);
  detached_ = true;
  dead_ = true;
  output_ = {};
  dropped.swap(callbacks_);
}

}  // namespace whimbrel::http
