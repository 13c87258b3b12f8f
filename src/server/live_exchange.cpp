#include "server/live_exchange.h"

#include <stdexcept>
#include <utility>

namespace whimbrel::http {

LiveExchange::~LiveExchange() {
  fail("[server] a handler let go of a request unanswered");
}

std::string LiveExchange::take_body() {
  lease_.release();
  return std::exchange(request_.body, {});
}

void LiveExchange::fail(std::string reason) {
  const ApiError error = error_of(std::runtime_error(reason));
  channel_->fail(error, std::move(reason));
}

ApiError busy_handlers() {
  return {
      .kind = ErrorKind::too_many_requests,
      .message = "got more requests at once than the server reads; try again later",
      .code = "too_many_requests_waiting",
      .retry_after = 1
  };
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
