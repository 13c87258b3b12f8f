#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/access.h"
#include "server/access_log.h"
#include "server/http_limits.h"
#include "server/router.h"

namespace whimbrel::http {

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // a name or an address
  uint16_t port = 8080;            // 0: a free one
  AccessOptions access = {};
  HttpLimits limits = {};
  int io_threads = 2;
  int handler_threads = 4;    // where a route isn't immediate
  std::string tls_cert = {};  // PEM files, both or none
  std::string tls_key = {};
  /// Called once a request, from any thread, at its end.
  std::function<void(const AccessLogEntry&)> on_request = {};
};

/// Serves routes over HTTP/1.1.
class HttpServer {
 public:
  /// Throws Error(Fault::usage) on options that don't fit together, on a host that isn't this
  /// machine's and on unusable TLS files, std::logic_error on routes that a Router refuses.
  HttpServer(const HttpServerOptions& options, std::vector<Route> routes);
  /// As drain(0).
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Listens. Throws Error(Fault::network) where the port can't be had.
  void start();

  /// The port that it listens to; 0 before start.
  uint16_t port() const;

  /// `http://HOST:PORT`.
  std::string url() const;

  const std::vector<Route>& routes() const;

  HttpCounters counters() const;

  /// Takes no connections any more, lets answers end for as long as `deadline`, then tells the open
  /// ones (CloseReason::server_stops), and closes. True where all had ended by themselves. The port
  /// is free at once. Returns when no thread of the server is left; idempotent. Not from a handler.
  bool drain(std::chrono::milliseconds deadline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace whimbrel::http
