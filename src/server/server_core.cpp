#include "server/server_core.h"

#include <utility>

namespace whimbrel::http {

ServerCore::ServerCore(HttpServerOptions given, std::vector<Route> routes, bool is_loopback)
    : options(std::move(given)),
      router(std::move(routes)),
      access(options.access, is_loopback),
      io(options.io_threads),
      pool(options.handler_threads, options.limits.waiting_handlers) {}

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

bool ServerCore::reserve_body(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > options.limits.bodies_bytes - body_bytes_) {
    return false;
  }
  body_bytes_ += bytes;
  return true;
}

void ServerCore::release_body(size_t bytes) {
  const std::lock_guard lock(mutex_);
  body_bytes_ -= bytes;
}

BodyLease& BodyLease::operator=(BodyLease&& other) noexcept {
  release();
  core_ = std::move(other.core_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

bool BodyLease::grow_to(size_t bytes) {
  if (bytes <= bytes_) {
    return true;
  }
  if (!core_->reserve_body(bytes - bytes_)) {
    return false;
  }
  bytes_ = bytes;
  return true;
}

void BodyLease::release() {
  if (bytes_ > 0) {
    core_->release_body(std::exchange(bytes_, 0));
  }
}

}  // namespace whimbrel::http
