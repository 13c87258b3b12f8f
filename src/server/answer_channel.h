#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api_error.h"
#include "server/exchange.h"

namespace whimbrel::http {

/// Between those who answer a request, on any thread, and the connection that sends the answer.
class AnswerChannel {
 public:
  /// `wake` is called, on an answering thread, where there is something to take. `shape`: of errors
  /// that are made here.
  AnswerChannel(ErrorShape shape, std::function<void()> wake);

  ErrorShape shape() const { return shape_; }

  // What an Exchange offers; see there.
  void note_ignored(std::vector<std::string> names);
  void respond(Response response);
  void start_stream(StreamHead head);
  void write(std::string_view bytes);
  void finish(std::string failure);
  void on_close(std::function<void(CloseReason)> callback);
  bool closed() const;

  /// Answers with an error where nothing is answered yet; breaks off a stream. `failure` is for the
  /// log.
  void fail(const ApiError& error, std::string failure);

  /// A handler starts to work. False where the client left before, so that it need not.
  bool begin();

  bool begun() const;

  /// What is there to send.
  struct Output {
    std::optional<Response> response = {};
    std::optional<StreamHead> stream = {};
    std::string bytes = {};
    bool finished = false;  // nothing follows
    bool broken = false;    // the connection has to break off behind the bytes
  };

  /// Takes at most `most` bytes of a stream.
  Output take(size_t most);

  /// Bytes of a stream that wait to be taken. The next to come wakes again.
  size_t waiting();

  std::string failure() const;

  /// What was noted, or came with the answer: a few names, each short.
  std::vector<std::string> ignored() const;

  /// Tells those who answer that it can't be sent, on this thread. Where the server stops they may
  /// write in the callback; whatever isn't finished then is answered with 503 or broken off.
  void close(CloseReason reason);

  /// The answer has left, or nobody is told: every later call does nothing.
  void detach();

 private:
  enum class State { open, streaming, ended };

  void require(State state) const;
  void wake(std::unique_lock<std::mutex> lock);
  void call_back(std::unique_lock<std::mutex> lock, CloseReason reason);

  ErrorShape shape_;
  std::function<void()> wake_;
  mutable std::mutex mutex_;
  State state_ = State::open;  // of those who answer
  bool dead_ = false;          // nothing more is sent
  bool detached_ = false;
  bool woken_ = false;
  bool begun_ = false;
  std::optional<CloseReason> closed_;
  std::vector<std::function<void(CloseReason)>> callbacks_;
  Output output_;
  std::string failure_;
  std::vector<std::string> ignored_;
};

}  // namespace whimbrel::http
