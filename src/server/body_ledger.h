#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "server/api_error.h"

namespace whimbrel::http {

/// Memory for the bodies of requests that nobody has read yet.
class BodyLedger {
 public:
  explicit BodyLedger(size_t most) : most_(most) {}

  /// False where that is more than all may hold together.
  bool reserve(size_t bytes);
  void release(size_t bytes);

 private:
  size_t most_;
  std::mutex mutex_;
  size_t bytes_ = 0;
};

/// A request's share of it.
class BodyLease {
 public:
  explicit BodyLease(std::shared_ptr<BodyLedger> ledger) : ledger_(std::move(ledger)) {}
  ~BodyLease() { release(); }
  BodyLease(BodyLease&& other) noexcept
      : ledger_(std::move(other.ledger_)), bytes_(std::exchange(other.bytes_, 0)) {}
  BodyLease& operator=(BodyLease&& other) noexcept;

  /// False, and nothing changed, where there is no room for that many.
  bool grow_to(size_t bytes);
  void release();

 private:
  std::shared_ptr<BodyLedger> ledger_;
  size_t bytes_ = 0;
};

/// The answer where there is no room for a body.
ApiError no_room_for_body();

}  // namespace whimbrel::http
