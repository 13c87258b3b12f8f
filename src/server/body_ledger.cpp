#include "server/body_ledger.h"

namespace whimbrel::http {

bool BodyLedger::reserve(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > most_ - bytes_) {
    return false;
  }
  bytes_ += bytes;
  return true;
}

void BodyLedger::release(size_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ -= bytes;
}

BodyLease& BodyLease::operator=(BodyLease&& other) noexcept {
  release();
  ledger_ = std::move(other.ledger_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

bool BodyLease::grow_to(size_t bytes) {
  if (bytes <= bytes_) {
    return true;
  }
  if (!ledger_->reserve(bytes - bytes_)) {
    return false;
  }
  bytes_ = bytes;
  return true;
}

void BodyLease::release() {
  if (bytes_ > 0) {
    ledger_->release(std::exchange(bytes_, 0));
  }
}

ApiError no_room_for_body() {
  return {
      .kind = ErrorKind::unavailable,
      .message = "got more in bodies at once than the server holds; try again later",
      .code = "bodies_too_large",
      .retry_after = 1
  };
}

}  // namespace whimbrel::http
