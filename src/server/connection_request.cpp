#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "server/connection.h"
#include "server/live_exchange.h"

namespace whimbrel::http {

namespace {

constexpr size_t kLongestRequestId = 64;
constexpr size_t kTenantDigits = 8;

std::string make_request_id() {
  std::array<unsigned char, 12> bytes = {};
  RAND_bytes(bytes.data(), static_cast<int>(bytes.size()));
  std::string id = "req_";
  for (const unsigned char byte : bytes) {
    id += fmt::format("{:02x}", byte);
  }
  return id;
}

bool is_request_id(std::string_view text) {
  const auto is_fit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= kLongestRequestId &&
         std::all_of(text.begin(), text.end(), is_fit);
}

bool has_body(const RequestHead& head) {
  return head.chunked || head.content_length.value_or(0) > 0;
}

/// A browser sends text/plain to anybody without asking; JSON it doesn't.
void require_json(const Request& request) {
  const std::string* type = request.find("content-type");
  const std::string_view media =
      type == nullptr ? std::string_view() : std::string_view(*type).substr(0, type->find(';'));
  if (!equal_ignoring_case(
          media.substr(0, media.find_last_not_of(" \t") + 1), "application/json"
      )) {
    throw ApiException(
        {.kind = ErrorKind::unsupported_media,
         .message = "got a body of another kind, expected Content-Type: application/json",
         .code = "unsupported_media_type"}
    );
  }
}

std::vector<Field> cors_fields(const std::string& origin) {
  if (origin.empty()) {
    return {};
  }
  return {
      {"Access-Control-Allow-Origin", origin},
      {"Access-Control-Expose-Headers", "x-request-id, request-id, Retry-After"},
      {"Vary", "Origin"}
  };
}

bool is_preflight(const Request& request) {
  return request.method == "OPTIONS" && request.find("access-control-request-method") != nullptr;
}

Response options_response(const Request& request, const std::string& allow, bool is_cors) {
  Response response;
  response.status = 204;
  response.fields = {{"Allow", allow}};
  if (is_cors && is_preflight(request)) {
    response.fields.push_back({"Access-Control-Allow-Methods", allow});
    if (const std::string* names = request.find("access-control-request-headers")) {
      response.fields.push_back({"Access-Control-Allow-Headers", *names});
    }
    response.fields.push_back({"Access-Control-Max-Age", "600"});
  }
  return response;
}

}  // namespace

void Connection::begin_record() {
  if (current_) {
    return;
  }
  current_.emplace(core_);
  current_->request.client = client_;
  current_->entry.client = client_;
  current_->frame.request_id = make_request_id();
  core_->count([](HttpCounters& counters) {
    ++counters.requests_begun;
    ++counters.requests_open;
  });
}

void Connection::begin_request(RequestHead head, std::string_view head_bytes) {
  begin_record();
  Current& current = *current_;
  Request& request = current.request;
  request.method = head.method;
  request.path = std::move(head.path);
  request.query = std::move(head.query);
  request.fields = std::move(head.fields);
  if (const std::string* id = request.find("x-request-id"); id != nullptr && is_request_id(*id)) {
    current.frame.request_id = *id;
  }
  request.request_id = current.frame.request_id;
  current.entry.method = escape_for_log(request.method);
  current.entry.path = escape_for_log(request.path);
  current.is_http_1_0 = head.is_http_1_0;
  current.is_head = request.method == "HEAD";
  keep_alive_ = keep_alive_ && head.keep_alive;
  if (const std::optional<Response> response = answer_without_handler()) {
    keep_alive_ = keep_alive_ && !has_body(head);
    stage_ = Stage::answering;
    input_deadline_.cancel();
    send_whole(*response);
  } else if (has_body(head)) {
    begin_body(head, head_bytes);
  } else {
    dispatch();
  }
}

std::optional<Response> Connection::answer_without_handler() {
  Current& current = *current_;
  Request& request = current.request;
  current.match = core_->router.match(request.method, request.path);
  if (const std::optional<ApiError> error = core_->access.check_browser(request)) {
    throw ApiException(*error);
  }
  const std::string origin = core_->access.allowed_origin(request);
  current.frame.fields = cors_fields(origin);
  // A browser asks without the key whether its page may send one.
  const bool is_cors = !origin.empty();
  const bool asks_first = is_cors && is_preflight(request) && !current.match.allow.empty();
  const std::optional<std::string> tenant = core_->access.tenant_of(request);
  if (!tenant && !current.match.is_public && !asks_first) {
    throw ApiException(unauthorized());
  }
  request.tenant = tenant.value_or("");
  current.entry.tenant = request.tenant.substr(0, kTenantDigits);
  if (current.match.error) {
    throw ApiException(*current.match.error);
  }
  if (current.match.route == nullptr) {
    return options_response(request, current.match.allow, is_cors);
  }
  return std::nullopt;
}

void Connection::begin_body(const RequestHead& head, std::string_view head_bytes) {
  require_json(current_->request);
  current_->body.emplace(head_bytes, core_->options.limits);
  stage_ = Stage::body;
  body_end_ = std::chrono::steady_clock::now() + core_->options.limits.body_time;
  if (head.expects_continue && input_.empty()) {
    send("HTTP/1.1 100 Continue\r\n\r\n");
  }
  read_body();
}

void Connection::dispatch() {
  Current& current = *current_;
  stage_ = Stage::answering;
  input_deadline_.cancel();
  const auto wake = [weak = weak_from_this()] {
    if (const std::shared_ptr<Connection> self = weak.lock()) {
      boost::asio::post(self->strand_, [self] { self->flush(); });
    }
  };
  const auto channel = std::make_shared<AnswerChannel>(current.match.shape, wake);
  current.channel = channel;
  current.body.reset();
  const Route& route = *current.match.route;
  const std::string path = current.request.path;
  const auto exchange = std::make_shared<LiveExchange>(
      std::exchange(current.request, {}), channel, std::move(current.lease)
  );
  current.request.path = path;
  read_more();
  const auto work = [&route, exchange, channel, core = core_] {
    run_handler(route.handler, exchange, channel);
  };
  if (route.immediate) {
    work();
  } else if (!core_->pool.post(work)) {
    channel->fail(busy_handlers(), "");
  }
}

}  // namespace whimbrel::http
