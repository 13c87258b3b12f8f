#include "server/worker_server.h"

#include <limits>
#include <stdexcept>
#include <utility>

#include "server/live_exchange.h"

namespace whimbrel::http {

namespace {

/// Reports that repeat the one before and are left out.
constexpr int kSilentReports = 10;

constexpr size_t kLongestPiece = size_t{1} << 20;

constexpr const char* kTooLong = "[worker] an answer was longer than a server sends";

Response too_long(ErrorShape shape) {
  Response response = error_response(error_of(std::runtime_error(kTooLong)), shape);
  response.failure = kTooLong;
  return response;
}

/// True where nothing more is to come.
bool send_pieces(FrameSocket& socket, uint64_t id, AnswerChannel& channel, size_t longest_answer) {
  channel.waiting();  // the next to come wakes again
  AnswerChannel::Output output = channel.take(std::numeric_limits<size_t>::max());
  if (output.response) {
    output.response->failure = channel.failure();
    if (output.response->body.size() > longest_answer) {
      output.response = too_long(channel.shape());
    }
    output.response->ignored = channel.ignored();
    socket.send({FrameKind::whole, id, encode_response(std::move(*output.response))});
    return true;
  }
  if (output.stream) {
    output.stream->ignored = channel.ignored();
    socket.send({FrameKind::stream, id, encode_stream_head(*output.stream)});
  }
  for (size_t at = 0; at < output.bytes.size(); at += kLongestPiece) {
    socket.send({FrameKind::piece, id, output.bytes.substr(at, kLongestPiece)});
  }
  if (output.broken) {
    socket.send({FrameKind::failed, id, channel.failure()});
  } else if (output.finished) {
    socket.send({FrameKind::finish, id, channel.failure()});
  }
  return output.broken || output.finished;
}

}  // namespace

/// Under the lock, so that pieces leave in their order whoever gives them.
void WorkerServer::Open::send_output(uint64_t id) {
  const std::lock_guard lock(mutex);
  const auto found = channels.find(id);
  if (socket != nullptr && found != channels.end() &&
      send_pieces(*socket, id, *found->second, longest_answer)) {
    channels.erase(found);
  }
}

std::shared_ptr<AnswerChannel> WorkerServer::Open::take(uint64_t id) {
  const std::lock_guard lock(mutex);
  const auto found = channels.find(id);
  if (found == channels.end()) {
    return nullptr;
  }
  std::shared_ptr<AnswerChannel> channel = std::move(found->second);
  channels.erase(found);
  return channel;
}

WorkerServer::WorkerServer(
    int descriptor,
    std::vector<Route> routes,
    std::function<WorkerReport()> report,
    const WorkerServerOptions& options
)
    : router_(std::move(routes)),
      report_(std::move(report)),
      options_(options),
      pool_(options.handler_threads, options.waiting_handlers),
      bodies_(std::make_shared<BodyLedger>(options.bodies_bytes)),
      socket_(
          descriptor,
          {.receive = [this](Frame frame) { receive(std::move(frame)); },
           .ended =
               [this] {
                 const std::lock_guard lock(mutex_);
                 has_ended_ = true;
                 ended_.notify_all();
               }}
      ) {
  open_->socket = &socket_;
  open_->longest_answer = options.longest_answer;
}

WorkerServer::~WorkerServer() {
  pool_.stop();
  std::map<uint64_t, std::shared_ptr<AnswerChannel>> left;
  {
    const std::lock_guard lock(open_->mutex);
    open_->socket = nullptr;
    left.swap(open_->channels);
  }
  for (const auto& [id, channel] : left) {
    channel->close(CloseReason::client_left);
  }
}

void WorkerServer::run() {
  socket_.start();
  socket_.send({FrameKind::ready});
  send_reports();
}

void WorkerServer::send_reports() {
  std::string last;
  int silent = 0;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, options_.report_time, [this] { return has_ended_; })) {
    std::string report = encode_report(report_());
    if (report == last && ++silent < kSilentReports) {
      continue;
    }
    socket_.send({FrameKind::status, 0, report});
    last = std::move(report);
    silent = 0;
  }
}

void WorkerServer::receive(Frame frame) {
  if (frame.kind == FrameKind::request) {
    answer(frame.id, decode_request(std::move(frame.payload)));
  } else if (frame.kind == FrameKind::gone) {
    if (const std::shared_ptr<AnswerChannel> channel = open_->take(frame.id)) {
      channel->close(CloseReason::client_left);
    }
  }
}

void WorkerServer::answer(uint64_t id, Request request) {
  const RouteMatch match = router_.match(request.method, request.path);
  const auto channel =
      std::make_shared<AnswerChannel>(match.shape, [id, open = open_] { open->send_output(id); });
  {
    const std::lock_guard lock(open_->mutex);
    open_->channels[id] = channel;
  }
  if (match.route == nullptr) {
    channel->fail(error_of(std::logic_error("[worker] got a request for no route of its")), "");
    return;
  }
  BodyLease lease(bodies_);
  if (!lease.grow_to(request.body.size())) {
    channel->fail(no_room_for_body(), "");
    return;
  }
  const auto exchange =
      std::make_shared<LiveExchange>(std::move(request), channel, std::move(lease));
  const auto work = [route = match.route, exchange, channel] {
    run_handler(route->handler, exchange, channel);
  };
  if (match.route->immediate) {
    work();
  } else if (!pool_.post(work)) {
    channel->fail(busy_handlers(), "");
  }
}

}  // namespace whimbrel::http
