#pragma once

#include <memory>

#include "server/answer_channel.h"
#include "server/exchange.h"
#include "server/server_core.h"

namespace whimbrel::http {

/// An exchange over a connection.
class LiveExchange : public Exchange {
 public:
  LiveExchange(Request request, std::shared_ptr<AnswerChannel> channel, BodyLease lease)
      : request_(std::move(request)), channel_(std::move(channel)), lease_(std::move(lease)) {}
  ~LiveExchange() override;
  LiveExchange(const LiveExchange&) = delete;
  LiveExchange& operator=(const LiveExchange&) = delete;

  const Request& request() const override { return request_; }
  std::string take_body() override;
  void note_ignored(std::vector<std::string> names) override {
    channel_->note_ignored(std::move(names));
  }
  void respond(Response response) override { channel_->respond(std::move(response)); }
  void start_stream(StreamHead head) override { channel_->start_stream(std::move(head)); }
  void write(std::string_view bytes) override { channel_->write(bytes); }
  void finish(std::string failure) override { channel_->finish(std::move(failure)); }
  void fail(std::string reason) override;
  void on_close(std::function<void(CloseReason)> callback) override {
    channel_->on_close(std::move(callback));
  }
  bool closed() const override { return channel_->closed(); }

 private:
  Request request_;
  std::shared_ptr<AnswerChannel> channel_;
  BodyLease lease_;
};

/// The answer where too many requests wait for a handler.
ApiError busy_handlers();

/// Runs a handler unless its client has left; what it throws becomes the answer.
void run_handler(
    const Handler& handler,
    const std::shared_ptr<Exchange>& exchange,
    const std::shared_ptr<AnswerChannel>& channel
);

}  // namespace whimbrel::http
