#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "server/handler_pool.h"
#include "server/http_server.h"

namespace whimbrel::http {

class Connection;

/// What the connections of a server share. The last of them, or of the exchanges, takes it down.
struct ServerCore {
  ServerCore(HttpServerOptions given, std::vector<Route> routes, bool is_loopback);

  const HttpServerOptions options;
  const Router router;
  const Access access;
  boost::asio::io_context io;
  HandlerPool pool;
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

  // --- bodies
  /// False where that is more than all may hold together.
  bool reserve_body(size_t bytes);
  void release_body(size_t bytes);

 private:
  std::mutex mutex_;
  std::condition_variable none_left_;
  std::map<Connection*, std::weak_ptr<Connection>> connections_;
  HttpCounters counters_;
  size_t body_bytes_ = 0;
};

/// A request's share of the memory for bodies.
class BodyLease {
 public:
  explicit BodyLease(std::shared_ptr<ServerCore> core) : core_(std::move(core)) {}
  ~BodyLease() { release(); }
  BodyLease(BodyLease&& other) noexcept
      : core_(std::move(other.core_)), bytes_(std::exchange(other.bytes_, 0)) {}
  BodyLease& operator=(BodyLease&& other) noexcept;

  /// False, and nothing changed, where there is no room for that many.
  bool grow_to(size_t bytes);
  void release();

 private:
  std::shared_ptr<ServerCore> core_;
  size_t bytes_ = 0;
};

}  // namespace whimbrel::http
