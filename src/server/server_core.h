#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "server/body_ledger.h"
#include "server/handler_pool.h"
#include "server/http_server.h"

namespace whimbrel::http {

class Connection;

/// What the connections of a server share. The last of them, or of the exchanges, takes it down.
struct ServerCore {
  ServerCore(const HttpServerOptions& given, std::vector<Route> routes, bool is_loopback);

  const HttpServerOptions options;
  const Router router;
  const Access access;
  boost::asio::io_context io;
  HandlerPool pool;
  const std::shared_ptr<BodyLedger> bodies;
  std::atomic<bool> draining = false;

  // --- connections
  void add(const std::shared_ptr<Connection>& connection);
  void remove(Connection* connection);
  std::vector<std::shared_ptr<Connection>> connections();
  size_t connection_count();
  /// Whether none is left within `time`.
  bool wait_until_none(std::chrono::milliseconds time);

  // --- numbers
  void count(const std::function<void(HttpCounters&)>& change);
  HttpCounters counters();
  void log(const AccessLogEntry& entry, const std::string& route);

 private:
  std::mutex mutex_;
  std::condition_variable none_left_;
  std::map<Connection*, std::weak_ptr<Connection>> connections_;
  HttpCounters counters_;
};

}  // namespace whimbrel::http
