#include "base/cores.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace whimbrel {
namespace {

class CoresTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }

  std::filesystem::path root_ = std::filesystem::path(testing::TempDir()) /
                                testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(CoresTest, two_threads_of_a_core_count_once) {
  for (const int cpu : {0, 1, 2, 3}) {
    const std::string siblings = cpu % 2 == 0 ? "0,2" : "1,3";
    write("cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", siblings);
  }
  EXPECT_EQ(physical_cores({0, 1, 2, 3}, root_), 2);
  EXPECT_EQ(physical_cores({0, 2}, root_), 1);
  EXPECT_EQ(physical_cores({2, 3}, root_), 2);
}

TEST_F(CoresTest, a_cpu_of_unknown_topology_is_a_core) {
  EXPECT_EQ(physical_cores({0, 1, 5}, root_), 3);
}

TEST_F(CoresTest, a_quota_of_version_2_is_rounded_up) {
  write("cpu.max", "150000 100000");
  EXPECT_EQ(cgroup_cpus(root_), 2);
}

TEST_F(CoresTest, no_quota_of_version_2_is_no_limit) {
  write("cpu.max", "max 100000");
  EXPECT_EQ(cgroup_cpus(root_), 0);
}

TEST_F(CoresTest, a_quota_of_version_1_counts_too) {
  write("cpu/cpu.cfs_quota_us", "50000");
  write("cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cgroup_cpus(root_), 1);
  write("cpu/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(cgroup_cpus(root_), 0);
}

TEST_F(CoresTest, this_process_may_use_at_least_one) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_EQ(cgroup_cpus(root_), 0);
}

}  // namespace
}  // namespace whimbrel
