#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "models/family.h"

namespace whimbrel {
namespace {

TEST(Registry, finds_each_family_by_its_model_type) {
  std::set<std::string_view> types;
  for (const Family* family : families()) {
    EXPECT_EQ(&find_family(family->model_type), family);
    EXPECT_TRUE(types.insert(family->model_type).second) << family->model_type;
  }
  EXPECT_TRUE(types.contains("qwen2_5_vl"));
}

TEST(Registry, an_unknown_one_is_refused_with_the_known_ones) {
  try {
    find_family("gpt2");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::model);
    EXPECT_NE(std::string(error.what()).find("\"gpt2\""), std::string::npos);
    for (const Family* family : families()) {
      EXPECT_NE(std::string(error.what()).find(family->model_type), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace whimbrel
