#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "server/api_error.h"
#include "server/exchange.h"
#include "server/frame_socket.h"

namespace whimbrel::http {

/// The way to one worker, and the requests of clients that it answers.
class WorkerLink : public std::enable_shared_from_this<WorkerLink> {
 public:
  struct Listener {
    std::function<void()> ready = {};  // the worker takes requests
    std::function<void(WorkerReport)> report = {};
    std::function<void()> ended = {};  // it has gone, or said what is no message
  };

  /// Owns the descriptor. The listener is called on a thread of the link, which it may not destroy.
  WorkerLink(int descriptor, Listener listener);

  void start() { socket_.start(); }

  /// Sends a client's request on; its answer goes to the client as it comes. Throws ApiException
  /// (429) where the worker has yet to take too much of what was sent before, and behind fail_all
  /// that error.
  void forward(const std::shared_ptr<Exchange>& exchange);

  /// Answers all that are left with an error, streams as their last event, and logs it. Returns how
  /// many.
  size_t fail_all(const ApiError& error);

 private:
  struct Forwarded;
  using ForwardedPtr = std::shared_ptr<Forwarded>;

  void receive(Frame frame);
  void take_answer(Frame frame);
  void close(uint64_t id, CloseReason reason);
  ForwardedPtr find(uint64_t id);
  ForwardedPtr take(uint64_t id);

  Listener listener_;
  std::mutex mutex_;
  std::map<uint64_t, ForwardedPtr> forwarded_;
  std::optional<ApiError> failed_;
  uint64_t next_id_ = 1;
  FrameSocket socket_;  // last: its thread uses the others
};

}  // namespace whimbrel::http
