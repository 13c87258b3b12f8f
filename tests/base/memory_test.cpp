#include "base/memory.h"

#include <gtest/gtest.h>

#include "base/executable.h"

namespace whimbrel {
namespace {

#if defined(__linux__)
TEST(Memory, the_system_says_what_is_left) {
  const std::optional<uint64_t> available = available_memory();
  ASSERT_TRUE(available);
  EXPECT_GT(*available, uint64_t{1} << 20);
  EXPECT_LT(*available, uint64_t{1} << 50);
}

TEST(Memory, what_is_left_is_part_of_all) {
  const std::optional<uint64_t> total = total_memory();
  ASSERT_TRUE(total);
  EXPECT_GE(*total, available_memory().value());
  EXPECT_LT(*total, uint64_t{1} << 50);
}
#endif

TEST(Executable, is_the_running_program) {
  EXPECT_EQ(executable_path().filename(), "test_base");
  EXPECT_TRUE(executable_path().is_absolute());
}

}  // namespace
}  // namespace whimbrel
