#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/request.h"
#include "server/answer_tally.h"
#include "server/exchange.h"
#include "server/model_service.h"

namespace whimbrel::http {

/// Throws ApiException (429) where too many requests wait, before anything is done for another.
void require_room(const ModelService& service);

/// An answer on its way: what the engine's thread tells of its requests becomes bytes for a client.
/// Lives as long as the engine works on one of them.
class Delivery : public std::enable_shared_from_this<Delivery> {
 public:
  virtual ~Delivery() = default;
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  /// Hands requests over, one for each prompt; when the client leaves they are cancelled. Throws
  /// ApiException (429) where too many wait; none of them goes on then.
  void begin(ModelService& service, std::vector<whimbrel::Request> requests);

 protected:
  explicit Delivery(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  Exchange& exchange() { return *exchange_; }

  /// Nothing more is to come of the requests.
  void end();

 private:
  /// All requests were taken; no event came yet.
  virtual void on_taken() = 0;
  virtual void on_event(int prompt, const Event& event) = 0;

  void hand_over(ModelService& service, std::vector<whimbrel::Request> requests);
  void take(int prompt, const Event& event);
  void tell_that_the_server_stops();

  std::mutex mutex_;
  std::shared_ptr<Exchange> exchange_;
  ModelService* service_ = nullptr;
  std::vector<uint64_t> ids_;
  bool ended_ = false;
};

/// What a log should say of a request's last event; empty unless it is a failure of ours.
std::string cause_of(const Event& event);

/// An event of the request of a prompt, for writers of one prompt and of several.
template <typename Writer>
auto push_event(Writer& writer, int prompt, const Event& event) {
  if constexpr (requires { writer.push(prompt, event); }) {
    return writer.push(prompt, event);
  } else {
    return writer.push(event);
  }
}

/// An answer that leaves as it comes.
template <typename Writer>
class StreamDelivery : public Delivery {
 public:
  StreamDelivery(std::shared_ptr<Exchange> exchange, Writer writer)
      : Delivery(std::move(exchange)), writer_(std::move(writer)) {}

 private:
  void on_taken() override { exchange().start_stream({}); }

  void on_event(int prompt, const Event& event) override {
    const std::string frames = push_event(writer_, prompt, event);
    if (!frames.empty()) {
      exchange().write(frames);
    }
    if (writer_.ended()) {
      exchange().finish(cause_of(event));
      end();
    }
  }

  Writer writer_;
};

/// An answer that leaves as a whole.
template <typename Writer>
class WholeDelivery : public Delivery {
 public:
  WholeDelivery(std::shared_ptr<Exchange> exchange, Writer writer)
      : Delivery(std::move(exchange)), writer_(std::move(writer)) {}

 private:
  void on_taken() override {}

  void on_event(int prompt, const Event& event) override {
    push_event(writer_, prompt, event);
    if (writer_.ended()) {
      const ErrorShape shape = error_shape_of(exchange().request().path);
      Response response = writer_.failure() ? error_response(*writer_.failure(), shape)
                                            : Response{.body = wire::dump(writer_.json())};
      response.failure = cause_of(event);
      exchange().respond(std::move(response));
      end();
    }
  }

  Writer writer_;
};

}  // namespace whimbrel::http
