#include "weights/names.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/weights/weight_folder.h"
#include "weights/safetensors.h"

namespace whimbrel {

namespace {

constexpr const char* kModels[] = {
    "tiny-qwen2-5-vl",
    "tiny-qwen2-5-vl-4bit",
    "tiny-qwen2-vl-4bit",
    "tiny-qwen3-vl-4bit",
    "tiny-qwen3-vl-moe-4bit",
};

std::vector<std::string> stored_names(std::string_view model) {
  std::vector<std::string> names;
  const auto path = test::bundled_model(model) / "model.safetensors";
  for (const TensorInfo& tensor : read_safetensors_header(path)) {
    names.push_back(tensor.name);
  }
  return names;
}

/// Canonical names without those of the quantiser.
std::set<std::string> canonical_names(std::string_view model) {
  std::set<std::string> names;
  for (const std::string& name : stored_names(model)) {
    if (!name.ends_with(".scales") && !name.ends_with(".biases")) {
      EXPECT_TRUE(names.insert(canonical_name(name)).second) << name;
    }
  }
  return names;
}

/// Every way a file may spell a canonical name.
std::vector<std::string> spellings(const std::string& name) {
  const auto under = [&name](std::string_view prefix, size_t cut) {
    return std::string(prefix) + name.substr(cut);
  };
  if (name.starts_with("visual.")) {
    return {name, under("model.visual.", 7), under("vision_tower.", 7)};
  }
  if (name.starts_with("model.")) {
    return {name, under("model.language_model.", 6), under("language_model.model.", 6)};
  }
  return {name, under("language_model.", 0)};
}

}  // namespace

TEST(Names, TableOfSpellings) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"model.embed_tokens.weight", "model.embed_tokens.weight"},
      {"model.language_model.embed_tokens.weight", "model.embed_tokens.weight"},
      {"language_model.model.embed_tokens.scales", "model.embed_tokens.scales"},
      {"language_model.model.norm.weight", "model.norm.weight"},
      {"lm_head.weight", "lm_head.weight"},
      {"language_model.lm_head.biases", "lm_head.biases"},
      {"language_model.lm_head", "lm_head"},
      {"visual.blocks.0.attn.qkv.bias", "visual.blocks.0.attn.qkv.bias"},
      {"model.visual.blocks.0.attn.qkv.bias", "visual.blocks.0.attn.qkv.bias"},
      {"vision_tower.patch_embed.proj.weight", "visual.patch_embed.proj.weight"},
      {"language_model.model.layers.3.mlp.switch_mlp.up_proj.weight",
       "model.layers.3.mlp.experts.up_proj.weight"},
      {"model.language_model.layers.3.mlp.experts.gate_up_proj",
       "model.layers.3.mlp.experts.gate_up_proj"},
      {"something.else", "something.else"},
      {"visual", "visual"},
      {"", ""},
  };
  for (const auto& [stored, canonical] : table) {
    EXPECT_EQ(canonical_name(stored), canonical) << stored;
  }
}

TEST(Names, HubAndMlxFilesOfOneModelAgree) {
  const std::set<std::string> hub = canonical_names("tiny-qwen2-5-vl");
  EXPECT_EQ(hub, canonical_names("tiny-qwen2-5-vl-4bit"));
  EXPECT_EQ(hub.size(), 116);
}

TEST(Names, AllNamesOfAllModelsAreKnownAndIdempotent) {
  for (const char* model : kModels) {
    for (const std::string& stored : stored_names(model)) {
      const std::string name = canonical_name(stored);
      EXPECT_TRUE(name.starts_with("model.") || name.starts_with("visual.")) << stored;
      EXPECT_EQ(canonical_name(name), name);
      for (const std::string& spelling : spellings(name)) {
        EXPECT_EQ(canonical_name(spelling), name) << spelling;
      }
    }
  }
}

TEST(Names, IdempotentOnOddNames) {
  for (const std::string first : {"model.", "visual.", "language_model.", "vision_tower."}) {
    for (const std::string second : {"model.", "visual.", "language_model.", "lm_head."}) {
      for (const std::string third : {"", "model.", "visual.", "mlp.switch_mlp.switch_mlp."}) {
        const std::string once = canonical_name(first + second + third + "x");
        EXPECT_EQ(canonical_name(once), once) << first << second << third;
      }
    }
  }
}

TEST(Names, OldRotaryFrequenciesAreIgnored) {
  EXPECT_TRUE(is_ignored_tensor("model.layers.0.self_attn.rotary_emb.inv_freq"));
  EXPECT_TRUE(is_ignored_tensor("visual.rotary_pos_emb.inv_freq"));
  EXPECT_FALSE(is_ignored_tensor("model.inv_freq.weight"));
  EXPECT_FALSE(is_ignored_tensor("model.norm.weight"));
}

}  // namespace whimbrel
