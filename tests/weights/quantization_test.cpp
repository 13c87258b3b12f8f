#include "weights/quantization.h"

#include <gtest/gtest.h>

#include "tests/weights/weight_folder.h"

namespace whimbrel {

namespace {

using test::contains;

const JsonSource kSource{"config.json"};

QuantizationTable table_of(const std::string& block) {
  return {Json::parse(fmt::format(R"({{"quantization":{}}})", block)), kSource};
}

}  // namespace

TEST(Quantization, WithoutBlockNothingIsStated) {
  EXPECT_EQ(QuantizationTable().find("model.layers.0.mlp.down_proj"), std::nullopt);
  EXPECT_EQ(QuantizationTable(Json::object(), kSource).find("lm_head"), std::nullopt);
}

TEST(Quantization, EitherKeyOfTheBlock) {
  const QuantizationConfig expected{.bits = 3, .group_size = 32};
  for (const std::string key : {"quantization", "quantization_config"}) {
    const Json root = {{key, {{"bits", 3}, {"group_size", 32}, {"mode", "affine"}}}};
    EXPECT_EQ(QuantizationTable(root, kSource).find("lm_head"), expected);
  }
}

TEST(Quantization, OverridesUnderEachAlias) {
  const std::vector<std::pair<std::string, std::string>> aliases = {
      {"language_model.model.layers.1.mlp.down_proj", "model.layers.1.mlp.down_proj"},
      {"model.layers.1.mlp.down_proj", "model.layers.1.mlp.down_proj"},
      {"model.language_model.layers.1.mlp.down_proj", "model.layers.1.mlp.down_proj"},
      {"language_model.model.embed_tokens", "model.embed_tokens"},
      {"lm_head", "lm_head"},
      {"language_model.lm_head", "lm_head"},
      {"visual.blocks.0.attn.qkv", "visual.blocks.0.attn.qkv"},
      {"model.visual.blocks.0.attn.qkv", "visual.blocks.0.attn.qkv"},
      {"vision_tower.blocks.0.attn.qkv", "visual.blocks.0.attn.qkv"},
      {"language_model.model.layers.1.mlp.switch_mlp.up_proj",
       "model.layers.1.mlp.experts.up_proj"},
  };
  const QuantizationConfig global{.bits = 4, .group_size = 64};
  const QuantizationConfig own{.bits = 8, .group_size = 32};
  for (const auto& [alias, module] : aliases) {
    const QuantizationTable table = table_of(
        fmt::format(R"({{"bits":4,"group_size":64,"{}":{{"bits":8,"group_size":32}}}})", alias)
    );
    EXPECT_EQ(table.find(module), own) << alias;
    EXPECT_EQ(table.find("model.layers.0.mlp.down_proj"), global);
    const QuantizationTable without =
        table_of(fmt::format(R"({{"bits":4,"group_size":64,"{}":false}})", alias));
    EXPECT_EQ(without.find(module), std::nullopt) << alias;
    const QuantizationTable with =
        table_of(fmt::format(R"({{"bits":4,"group_size":64,"{}":true}})", alias));
    EXPECT_EQ(with.find(module), global) << alias;
  }
}

TEST(Quantization, WhatAnOverrideLeavesOutIsLeftToTheShapes) {
  const QuantizationTable table = table_of(R"({"bits":4,"group_size":32,"lm_head":{"bits":8}})");
  EXPECT_EQ(table.find("lm_head"), (QuantizationConfig{.bits = 8, .group_size = std::nullopt}));
}

TEST(Quantization, TwoNamesOfOneModuleMayAgree) {
  const QuantizationTable table = table_of(
      R"({"bits":4,"group_size":64,"lm_head":{"bits":8},"language_model.lm_head":{"bits":8}})"
  );
  EXPECT_EQ(table.find("lm_head")->bits, 8);
}

TEST(Quantization, RefusesWhatItCannotRead) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {R"({"bits":7,"group_size":64})", "\"bits\": 7, expected one of 2, 3, 4, 5, 6, 8"},
      {R"({"bits":0,"group_size":64})", "\"bits\": 0"},
      {R"({"bits":-4,"group_size":64})", "\"bits\": -4"},
      {R"({"bits":4.0,"group_size":64})", "\"bits\": 4.0"},
      {R"({"bits":4,"group_size":16})", "\"group_size\": 16, expected one of 32, 64, 128"},
      {R"({"bits":4,"group_size":4294967360})", "\"group_size\": 4294967360"},
      {R"({"bits":4,"group_size":32,"mode":"mxfp4"})", "mode \"mxfp4\""},
      {R"({"bits":4,"group_size":16,"mode":"nvfp4"})", "mode \"nvfp4\""},
      {R"({"bits":8,"group_size":32,"mode":"mxfp8"})", "mode \"mxfp8\""},
      {R"({"bits":4,"mode":1})", "expected a string"},
      {R"({"bits":4,"lm_head":{"bits":9}})", "quantization of \"lm_head\"] got \"bits\": 9"},
      {R"({"bits":4,"lm_head":{"mode":"mxfp4"}})", "mode \"mxfp4\""},
      {R"({"bits":4,"lm_head":{"zero_point":1}})", "the key \"zero_point\""},
      {R"({"bits":4,"lm_head":8})", "got 8, expected an object"},
      {R"({"bits":4,"zero_point":null})", "\"zero_point\"] got null"},
      {R"({"bits":4,"lm_head":false,"language_model.lm_head":{"bits":8}})", "a second, different"},
      {R"([1])", "expected an object"},
  };
  for (const auto& [block, complaint] : bad) {
    EXPECT_TRUE(contains(test::model_error([&block = block] { table_of(block); }), complaint))
        << block;
  }
  const Json two = Json::parse(R"({"quantization":{"bits":4},"quantization_config":{"bits":8}})");
  EXPECT_TRUE(contains(test::model_error([&] { QuantizationTable(two, kSource); }), "that differ"));
}

}  // namespace whimbrel
