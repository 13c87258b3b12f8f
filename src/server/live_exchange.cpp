#include "server/live_exchange.h"

#include <stdexcept>

namespace whimbrel::http {

LiveExchange::~LiveExchange() {
  constexpr const char* kForgotten = "[server] a handler let go of a request unanswered";
  channel_->fail(error_of(std::logic_error(kForgotten)), kForgotten);
}

void run_handler(
    const Handler& handler,
    const std::shared_ptr<Exchange>& exchange,
    const std::shared_ptr<AnswerChannel>& channel
) {
  if (!channel->begin()) {
    return;
  }
  try {
    handler(exchange);
  } catch (const std::exception& exception) {
    const ApiError error = error_of(exception);
    channel->fail(error, error.kind == ErrorKind::internal ? exception.what() : "");
  } catch (...) {
    constexpr const char* kUnknown = "[server] a handler threw what is no exception";
    channel->fail(error_of(std::logic_error(kUnknown)), kUnknown);
  }
}

}  // namespace whimbrel::http
