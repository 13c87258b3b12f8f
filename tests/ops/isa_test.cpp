#include "ops/cpu/isa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace whimbrel::ops::cpu {
namespace {

TEST(Isa, scalar_is_always_there_and_the_widest_stands_last) {
  const auto& offered = available_isas();
  ASSERT_FALSE(offered.empty());
  EXPECT_EQ(offered.front(), Isa::scalar);
  EXPECT_TRUE(std::ranges::is_sorted(offered));
  EXPECT_EQ(std::ranges::adjacent_find(offered), offered.end());
}

TEST(Isa, the_widest_is_the_default) {
  EXPECT_EQ(choose_isa(""), available_isas().back());
}

TEST(Isa, each_that_is_offered_can_be_named) {
  for (const Isa isa : available_isas()) {
    EXPECT_EQ(choose_isa(isa_name(isa)), isa) << isa_name(isa);
  }
}

std::string refusal_of(std::string_view name) {
  try {
    choose_isa(name);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::usage);
    return error.what();
  }
  return "";
}

TEST(Isa, an_unknown_name_is_refused_with_the_list) {
  for (const std::string name : {"avx", "AVX2", "avx2 ", "riscv"}) {
    const std::string refusal = refusal_of(name);
    EXPECT_NE(refusal.find("\"" + name + "\""), std::string::npos) << refusal;
    for (const Isa isa : available_isas()) {
      EXPECT_NE(refusal.find(isa_name(isa)), std::string::npos) << refusal;
    }
  }
}

TEST(Isa, one_of_another_architecture_is_refused) {
#if defined(__x86_64__)
  EXPECT_NE(refusal_of("neon"), "");
#else
  EXPECT_NE(refusal_of("avx2"), "");
#endif
}

}  // namespace
}  // namespace whimbrel::ops::cpu
