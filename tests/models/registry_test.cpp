#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "models/family.h"
#include "tests/support/source_dir.h"
#include "weights/config.h"

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

TEST(Registry, families_say_how_boxes_are_written_and_what_their_numbers_are) {
  const auto boxes = [](const char* name) {
    const ModelConfig config = read_model_config(test::source_dir() / "models" / name);
    const std::optional<MediaRules> rules = find_family(config.model_type).media_rules(config);
    return std::pair(rules->box_notation, rules->boxes);
  };
  using enum BoxConvention;
  EXPECT_EQ(boxes("tiny-qwen2-vl-4bit"), std::pair(BoxNotation::pairs, thousandths));
  EXPECT_EQ(boxes("tiny-qwen2-5-vl"), std::pair(BoxNotation::json, resized_pixels));
  EXPECT_EQ(boxes("tiny-qwen3-vl-4bit"), std::pair(BoxNotation::json, thousandths));
  EXPECT_EQ(boxes("tiny-qwen3-vl-moe-4bit"), std::pair(BoxNotation::json, thousandths));
}

}  // namespace
}  // namespace whimbrel
