#pragma once

#include <cstdint>
#include <memory>
#include <optional>

namespace whimbrel {

/// Bytes that requests and caches share: whoever holds some has a share of it. Safe from several
/// threads.
class MemoryLedger {
 public:
  /// Bytes held, given back when it goes. Move only.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept = default;
    Share& operator=(Share&& other) noexcept = default;
    ~Share() = default;

    uint64_t bytes() const { return held_ == nullptr ? 0 : *held_; }

   private:
    friend class MemoryLedger;
    explicit Share(std::shared_ptr<const uint64_t> held) : held_(std::move(held)) {}

    std::shared_ptr<const uint64_t> held_;
  };

  explicit MemoryLedger(uint64_t budget);

  /// Nothing where so many are not left.
  std::optional<Share> take(uint64_t bytes);

  uint64_t budget() const;
  uint64_t used() const;
  uint64_t left() const { return budget() - used(); }

 private:
  struct Account;
  std::shared_ptr<Account> account_;
};

}  // namespace whimbrel
