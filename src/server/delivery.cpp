#include "server/delivery.h"

#include <utility>

namespace whimbrel::http {

namespace {

/// Seconds after which a client may try again.
constexpr int kRetryAfter = 1;

ApiException queue_is_full() {
  return ApiException({
      .kind = ErrorKind::too_many_requests,
      .message = "got more requests than may wait, expected fewer; try again in a moment",
      .code = "queue_full",
      .retry_after = kRetryAfter,
  });
}

}  // namespace

std::string cause_of(const Event& event) {
  const auto* failed = std::get_if<RequestFailed>(&event);
  if (failed == nullptr) {
    return {};
  }
  const bool is_ours = failed->fault == Fault::model || failed->fault == Fault::io;
  return is_ours && failed->cause.empty() ? failed->message : failed->cause;
}

void require_room(const ModelService& service) {
  if (service.serving().is_full()) {
    throw queue_is_full();
  }
}

// The lock is held until all are handed over: events that come meanwhile wait for that.
void Delivery::begin(ModelService& service, std::vector<whimbrel::Request> requests) {
  const std::shared_ptr<Exchange> exchange = exchange_;
  {
    const std::lock_guard lock(mutex_);
    service_ = &service;
    try {
      hand_over(service, std::move(requests));
      on_taken();
    } catch (...) {
      end();
      throw;
    }
  }
  exchange->on_close([&service, ids = ids_, self = weak_from_this()](CloseReason reason) {
    const std::shared_ptr<Delivery> delivery = self.lock();
    if (reason == CloseReason::server_stops && delivery != nullptr) {
      delivery->tell_that_the_server_stops();
    }
    for (const uint64_t id : ids) {
      service.serving().cancel(id);
    }
  });
}

void Delivery::hand_over(ModelService& service, std::vector<whimbrel::Request> requests) {
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto sink = [self = shared_from_this(),
                       prompt = static_cast<int>(i)](const Event& event) {
      self->take(prompt, event);
    };
    const std::optional<uint64_t> id = service.serving().submit(std::move(requests[i]), sink);
    if (!id) {
      throw queue_is_full();
    }
    ids_.push_back(*id);
  }
}

void Delivery::end() {
  ended_ = true;
  for (const uint64_t id : ids_) {
    service_->serving().cancel(id);
  }
}

/// The engine's thread can do nothing about an answer that can't be written.
void Delivery::take(int prompt, const Event& event) {
  const std::lock_guard lock(mutex_);
  if (ended_) {
    return;
  }
  try {
    on_event(prompt, event);
  } catch (const std::exception& exception) {
    end();
    exchange_->fail(exception.what());
    exchange_.reset();
  }
}

void Delivery::tell_that_the_server_stops() {
  take(0, RequestFailed{Fault::interrupted, "the server stops"});
}

}  // namespace whimbrel::http
