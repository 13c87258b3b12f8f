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

// The lock is held until all are handed over: events that come meanwhile wait for that.
void Delivery::begin(ModelService& service, std::vector<whimbrel::Request> requests) {
  {
    const std::lock_guard lock(mutex_);
    service_ = &service;
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto sink = [self = shared_from_this(),
                         prompt = static_cast<int>(i)](const Event& event) {
        self->take(prompt, event);
      };
      const std::optional<uint64_t> id = service.serving().submit(std::move(requests[i]), sink);
      if (!id) {
        end();
        throw queue_is_full();
      }
      ids_.push_back(*id);
    }
    on_taken();
  }
  exchange_->on_close([&service, ids = ids_](CloseReason) {
    for (const uint64_t id : ids) {
      service.serving().cancel(id);
    }
  });
}

void Delivery::end() {
  ended_ = true;
  for (const uint64_t id : ids_) {
    service_->serving().cancel(id);
  }
}

void Delivery::take(int prompt, const Event& event) {
  const std::lock_guard lock(mutex_);
  if (!ended_) {
    on_event(prompt, event);
  }
}

}  // namespace whimbrel::http
