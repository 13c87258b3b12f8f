#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http_server.h"
#include "tests/support/raw_http.h"

namespace whimbrel::http::test {

using whimbrel::test::eventually;
using whimbrel::test::RawAnswer;
using whimbrel::test::RawClient;
using whimbrel::test::request_once;
using ExchangePtr = std::shared_ptr<Exchange>;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// `METHOD PATH` with a Host and more lines, each ended by CR LF.
inline std::string ask(std::string_view method, std::string_view path, std::string_view more = "") {
  return fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", method, path, more);
}

inline std::string post(std::string_view path, std::string_view body, std::string_view more = "") {
  return ask("POST",
             path,
             fmt::format(
                 "Content-Type: application/json\r\nContent-Length: {}\r\n{}", body.size(), more
             )) +
         std::string(body);
}

inline Route public_route(std::string method, std::string path, Handler handler) {
  return {
      .method = std::move(method),
      .path = std::move(path),
      .needs_key = false,
      .handler = std::move(handler)
  };
}

inline Handler answer(std::string body) {
  return [body](const ExchangePtr& exchange) { exchange->respond({.body = body}); };
}

/// What a handler was given, for the test's thread to answer.
class Inbox {
 public:
  Handler handler() {
    return [this](ExchangePtr exchange) {
      const std::lock_guard lock(mutex_);
      exchanges_.push_back(std::move(exchange));
    };
  }

  /// The oldest, once there is one.
  ExchangePtr take() {
    ExchangePtr taken;
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex_);
      if (exchanges_.empty()) {
        return false;
      }
      taken = std::move(exchanges_.front());
      exchanges_.erase(exchanges_.begin());
      return true;
    }));
    return taken;
  }

 private:
  std::mutex mutex_;
  std::vector<ExchangePtr> exchanges_;
};

/// A server on a free port of the loopback, with its access log.
class TestServer {
 public:
  explicit TestServer(std::vector<Route> routes, HttpServerOptions options = {})
      : server_(with_log(std::move(options)), std::move(routes)) {
    server_.start();
  }

  HttpServer& operator*() { return server_; }
  HttpServer* operator->() { return &server_; }
  uint16_t port() const { return server_.port(); }

  std::optional<RawAnswer> get(std::string_view path, std::string_view more = "") {
    return request_once(port(), ask("GET", path, more));
  }

  std::vector<AccessLogEntry> log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  /// Whether some request's entry tells of that failure, or comes to: behind its answer, and behind
  /// those of requests that came later.
  bool logs_failure(std::string_view part) {
    return eventually([&] {
      return std::ranges::any_of(log(), [&](const AccessLogEntry& entry) {
        return entry.failure.find(part) != std::string::npos;
      });
    });
  }

  /// Whether that many requests of that outcome are counted, or come to be.
  bool counts(Outcome outcome, uint64_t requests) {
    return eventually([&] { return server_.counters().requests_by_outcome[outcome] == requests; });
  }

  /// Whether every request that was begun ended in one of the outcomes, or comes to.
  bool all_ended() {
    return eventually([&] {
      const HttpCounters counters = server_.counters();
      uint64_t ended = 0;
      for (const auto& [outcome, requests] : counters.requests_by_outcome) {
        ended += requests;
      }
      return counters.requests_open == 0 && counters.requests_begun == ended;
    });
  }

 private:
  HttpServerOptions with_log(HttpServerOptions options) {
    options.port = 0;
    options.on_request = [this](const AccessLogEntry& entry) {
      const std::lock_guard lock(mutex_);
      log_.push_back(entry);
    };
    return options;
  }

  std::mutex mutex_;
  std::vector<AccessLogEntry> log_;
  HttpServer server_;
};

}  // namespace whimbrel::http::test
