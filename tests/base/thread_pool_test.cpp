#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace whimbrel {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, every_thread_runs_once_a_round) {
  ThreadPool pool(GetParam());
  ASSERT_EQ(pool.threads(), GetParam());
  std::vector<std::atomic<int>> runs(static_cast<size_t>(pool.threads()));
  for (int round = 1; round <= 2000; ++round) {
    pool.run([&runs](int thread) { ++runs[static_cast<size_t>(thread)]; });
    for (const std::atomic<int>& count : runs) {
      ASSERT_EQ(count, round);
    }
  }
}

TEST_P(ThreadPoolTest, every_task_is_done_once) {
  ThreadPool pool(GetParam());
  for (const int count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> done(static_cast<size_t>(count));
    pool.parallel_for(count, [&](int task, int thread) {
      ASSERT_LT(thread, pool.threads());
      ++done[static_cast<size_t>(task)];
    });
    for (const std::atomic<int>& times : done) {
      EXPECT_EQ(times, 1);
    }
  }
}

TEST_P(ThreadPoolTest, wakes_up_after_a_pause) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> runs = 0;
    pool.run([&runs](int) { ++runs; });
    EXPECT_EQ(runs, pool.threads());
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace whimbrel
