#include "server/worker_link.h"

#include <utility>
#include <vector>

#include "server/sse.h"

namespace whimbrel::http {

namespace {

/// Of requests that the worker hasn't taken: as much as the bodies of a server may hold together.
constexpr size_t kMostWaiting = size_t{512} << 20;

ApiError server_stops() {
  return {.kind = ErrorKind::unavailable, .message = "the server stops; try again later"};
}

/// The last event of a stream.
std::string error_event(const ApiError& error, ErrorShape shape) {
  const std::string json =
      error_json(error, shape).dump(-1, ' ', false, Json::error_handler_t::replace);
  return shape == ErrorShape::anthropic ? sse_event("error", json) : sse_data(json);
}

/// What the worker has to know of a request. The body goes with it.
Request for_worker(Exchange& exchange) {
  const Request& asked = exchange.request();
  return {
      .method = asked.method,
      .path = asked.path,
      .query = asked.query,
      .body = exchange.take_body(),
      .request_id = asked.request_id,
      .client = asked.client,
      .tenant = asked.tenant,
  };
}

}  // namespace

/// Pieces of the answer come on one thread, and its end perhaps on another.
struct WorkerLink::Forwarded {
  std::mutex mutex = {};
  std::shared_ptr<Exchange> exchange = {};  // empty once it is answered
  ErrorShape shape = ErrorShape::openai;
  bool streams = false;

  void take_answer(Frame frame);
  void fail(const ApiError& error, const std::string& failure);
};

void WorkerLink::Forwarded::take_answer(Frame frame) {
  const std::lock_guard lock(mutex);
  if (exchange == nullptr) {
    return;
  }
  switch (frame.kind) {
    case FrameKind::stream:
      exchange->start_stream(decode_stream_head(frame.payload));
      streams = true;
      return;
    case FrameKind::piece:
      exchange->write(frame.payload);
      return;
    case FrameKind::whole:
      exchange->respond(decode_response(std::move(frame.payload)));
      break;
    case FrameKind::finish:
      exchange->finish(std::move(frame.payload));
      break;
    default:
      exchange->fail(std::move(frame.payload));
  }
  exchange.reset();
}

void WorkerLink::Forwarded::fail(const ApiError& error, const std::string& failure) {
  const std::lock_guard lock(mutex);
  if (exchange == nullptr) {
    return;
  }
  if (streams) {
    exchange->write(error_event(error, shape));
    exchange->finish(failure);
  } else {
    Response response = error_response(error, shape);
    response.failure = failure;
    exchange->respond(std::move(response));
  }
  exchange.reset();
}

WorkerLink::WorkerLink(int descriptor, Listener listener)
    : listener_(std::move(listener)),
      socket_(
          descriptor,
          {.receive = [this](Frame frame) { receive(std::move(frame)); },
           .ended = [this] { listener_.ended(); }}
      ) {}

void WorkerLink::forward(const std::shared_ptr<Exchange>& exchange) {
  if (socket_.waiting_bytes() > kMostWaiting) {
    throw ApiException({
        .kind = ErrorKind::too_many_requests,
        .message = "got more requests at once than the server reads; try again later",
        .code = "too_many_requests_waiting",
        .retry_after = 1,
    });
  }
  const auto forwarded = std::make_shared<Forwarded>();
  forwarded->exchange = exchange;
  forwarded->shape = error_shape_of(exchange->request().path);
  uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) {
      throw ApiException(*failed_);
    }
    id = next_id_++;
    forwarded_[id] = forwarded;
  }
  socket_.send({FrameKind::request, id, encode_request(for_worker(*exchange))});
  exchange->on_close([weak = weak_from_this(), id](CloseReason reason) {
    if (const std::shared_ptr<WorkerLink> self = weak.lock()) {
      self->close(id, reason);
    }
  });
}

size_t WorkerLink::fail_all(const ApiError& error) {
  std::map<uint64_t, ForwardedPtr> left;
  {
    const std::lock_guard lock(mutex_);
    failed_ = error;
    left.swap(forwarded_);
  }
  for (const auto& [id, forwarded] : left) {
    forwarded->fail(error, error.message);
  }
  return left.size();
}

void WorkerLink::receive(Frame frame) {
  if (frame.kind == FrameKind::ready) {
    listener_.ready();
  } else if (frame.kind == FrameKind::status) {
    listener_.report(decode_report(frame.payload));
  } else {
    take_answer(std::move(frame));
  }
}

/// An answer to a client that has left is dropped.
void WorkerLink::take_answer(Frame frame) {
  const bool goes_on = frame.kind == FrameKind::stream || frame.kind == FrameKind::piece;
  if (const ForwardedPtr forwarded = goes_on ? find(frame.id) : take(frame.id)) {
    forwarded->take_answer(std::move(frame));
  }
}

void WorkerLink::close(uint64_t id, CloseReason reason) {
  const ForwardedPtr forwarded = take(id);
  if (forwarded == nullptr) {
    return;
  }
  if (reason == CloseReason::server_stops) {
    forwarded->fail(server_stops(), "");
  }
  socket_.send({FrameKind::gone, id});
}

WorkerLink::ForwardedPtr WorkerLink::find(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = forwarded_.find(id);
  return found == forwarded_.end() ? nullptr : found->second;
}

WorkerLink::ForwardedPtr WorkerLink::take(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = forwarded_.find(id);
  if (found == forwarded_.end()) {
    return nullptr;
  }
  ForwardedPtr forwarded = std::move(found->second);
  forwarded_.erase(found);
  return forwarded;
}

}  // namespace whimbrel::http
