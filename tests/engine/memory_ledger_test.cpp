#include "engine/memory_ledger.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

namespace whimbrel {
namespace {

TEST(MemoryLedger, gives_what_is_left_and_takes_it_back) {
  MemoryLedger ledger(100);
  std::optional<MemoryLedger::Share> first = ledger.take(60);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->bytes(), 60U);
  EXPECT_FALSE(ledger.take(41));
  EXPECT_TRUE(ledger.take(40));
  EXPECT_EQ(ledger.used(), 60U) << "the other went at once";
  MemoryLedger::Share kept = std::move(*first);
  first.reset();
  EXPECT_EQ(ledger.used(), 60U);
  kept = {};
  EXPECT_EQ(ledger.left(), 100U);
}

TEST(MemoryLedger, no_sum_overflows) {
  MemoryLedger ledger(100);
  const auto held = ledger.take(10);
  EXPECT_FALSE(ledger.take(std::numeric_limits<uint64_t>::max()));
  EXPECT_FALSE(ledger.take(std::numeric_limits<uint64_t>::max() - 5));
}

TEST(MemoryLedger, a_share_outlives_it) {
  std::optional<MemoryLedger::Share> share;
  {
    MemoryLedger ledger(100);
    share = ledger.take(10);
  }
  EXPECT_EQ(share->bytes(), 10U);
}

TEST(MemoryLedger, threads_balance) {
  MemoryLedger ledger(1000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&ledger] {
      for (int round = 0; round < 1000; ++round) {
        const auto share = ledger.take(400);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(ledger.used(), 0U);
}

}  // namespace
}  // namespace whimbrel
