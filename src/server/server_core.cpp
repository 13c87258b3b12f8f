#include "server/server_core.h"

#include <algorithm>
#include <utility>

namespace whimbrel::http {

namespace {

/// Keys are kept as hashes only (Access).
HttpServerOptions without_keys(HttpServerOptions options) {
  options.access.api_keys.clear();
  return options;
}

/// None where every route is answered by the thread that serves its connection.
int handler_threads(const HttpServerOptions& options, const Router& router) {
  return std::ranges::all_of(router.routes(), &Route::immediate) ? 0 : options.handler_threads;
}

}  // namespace

ServerCore::ServerCore(const HttpServerOptions& given, std::vector<Route> routes, bool is_loopback)
    : options(without_keys(given)),
      router(std::move(routes)),
      access(given.access, is_loopback),
      io(options.io_threads),
      pool(handler_threads(options, router), options.limits.waiting_handlers),
      bodies(std::make_shared<BodyLedger>(options.limits.bodies_bytes)) {}

void ServerCore::add(const std::shared_ptr<Connection>& connection) {
  const std::lock_guard lock(mutex_);
  connections_[connection.get()] = connection;
  ++counters_.connections_accepted;
}

void ServerCore::remove(Connection* connection) {
  const std::lock_guard lock(mutex_);
  connections_.erase(connection);
  if (connections_.empty()) {
    none_left_.notify_all();
  }
}

std::vector<std::shared_ptr<Connection>> ServerCore::connections() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Connection>> alive;
  for (const auto& [key, connection] : connections_) {
    if (std::shared_ptr<Connection> held = connection.lock()) {
      alive.push_back(std::move(held));
    }
  }
  return alive;
}

size_t ServerCore::connection_count() {
  const std::lock_guard lock(mutex_);
  return connections_.size();
}

bool ServerCore::wait_until_none(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return none_left_.wait_for(lock, time, [this] { return connections_.empty(); });
}

void ServerCore::count(const std::function<void(HttpCounters&)>& change) {
  const std::lock_guard lock(mutex_);
  change(counters_);
}

HttpCounters ServerCore::counters() {
  const std::lock_guard lock(mutex_);
  HttpCounters copy = counters_;
  copy.connections_open = connections_.size();
  return copy;
}

void ServerCore::log(const AccessLogEntry& entry, const std::string& route) {
  count([&](HttpCounters& counters) {
    --counters.requests_open;
    counters.body_bytes += entry.body_bytes;
    counters.sent_bytes += entry.sent_bytes;
    ++counters.requests_by_outcome[entry.outcome];
    ++counters.requests_by_route[{route, entry.status}];
  });
  if (options.on_request) {
    options.on_request(entry);
  }
}

}  // namespace whimbrel::http
