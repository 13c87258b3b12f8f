#include "engine/memory_ledger.h"

#include <mutex>

namespace whimbrel {

struct MemoryLedger::Account {
  explicit Account(uint64_t bytes) : budget(bytes) {}

  const uint64_t budget;
  std::mutex mutex;
  uint64_t used = 0;
};

MemoryLedger::MemoryLedger(uint64_t budget) : account_(std::make_shared<Account>(budget)) {}

std::optional<MemoryLedger::Share> MemoryLedger::take(uint64_t bytes) {
  const std::lock_guard lock(account_->mutex);
  if (bytes > account_->budget - account_->used) {
    return std::nullopt;
  }
  account_->used += bytes;
  const auto give_back = [account = account_](const uint64_t* held) {
    const std::lock_guard locked(account->mutex);
    account->used -= *held;
    delete held;
  };
  return Share(std::shared_ptr<const uint64_t>(new uint64_t(bytes), give_back));
}

uint64_t MemoryLedger::budget() const {
  return account_->budget;
}

uint64_t MemoryLedger::used() const {
  const std::lock_guard lock(account_->mutex);
  return account_->used;
}

}  // namespace whimbrel
