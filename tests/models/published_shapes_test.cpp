// Published checkpoints loaded at full size without their weights: names, shapes, layouts, tying
// and configuration, as tools/make_published_shapes.py makes them. Exact totals are those that the
// published files' byte counts give; rounded figures follow from the models' stated sizes.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mlx/memory.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "models/family.h"
#include "tests/support/lazy_ops.h"
#include "tests/support/made_by_tool.h"
#include "weights/checkpoint.h"
#include "weights/weight_files.h"

namespace whimbrel {
namespace {

/// Bounds of pictures, the number of axes' frequencies (time, height, width) and their order.
struct Sight {
  PixelBounds bounds;
  std::array<int, 3> section;
  bool interleaved;
};

constexpr Sight kQwen2Sight = {{3136, 12845056}, {16, 24, 24}, false};
constexpr Sight kQwen3Sight = {{65536, 16777216}, {24, 20, 20}, true};

struct Published {
  std::string_view model;
  std::string_view model_type;
  std::string_view billions;         // of parameters
  std::string_view vision_billions;  // of those, in the tower
  uint64_t kv_bytes;                 // of keys and values a token, bf16
  std::string_view gigabytes;        // of the weight files
  std::optional<Sight> sight = std::nullopt;

  friend std::ostream& operator<<(std::ostream& out, const Published& published) {
    return out << published.model;
  }
};

constexpr auto kModels = std::to_array<Published>({
    {"Qwen2-VL-2B-Instruct", "qwen2_vl", "2.209", "0.665", 28672, "4.42", kQwen2Sight},
    {"Qwen2-VL-7B-Instruct", "qwen2_vl", "8.291", "0.676", 57344, "16.58", kQwen2Sight},
    {"Qwen2.5-VL-3B-Instruct", "qwen2_5_vl", "3.755", "0.669", 36864, "7.51", kQwen2Sight},
    {"Qwen2.5-VL-7B-Instruct", "qwen2_5_vl", "8.292", "0.677", 57344, "16.58", kQwen2Sight},
    {"Qwen2.5-VL-32B-Instruct", "qwen2_5_vl", "33.453", "0.689", 262144, "66.91", kQwen2Sight},
    {"Qwen2.5-VL-72B-Instruct", "qwen2_5_vl", "73.411", "0.705", 327680, "146.82", kQwen2Sight},
    {"Qwen3-VL-2B-Instruct", "qwen3_vl", "2.128", "0.407", 114688, "4.26", kQwen3Sight},
    {"Qwen3-VL-4B-Instruct", "qwen3_vl", "4.438", "0.415", 147456, "8.88", kQwen3Sight},
    {"Qwen3-VL-8B-Instruct", "qwen3_vl", "8.767", "0.576", 147456, "17.53", kQwen3Sight},
    {"Qwen3-VL-32B-Instruct", "qwen3_vl", "33.357", "0.595", 262144, "66.71", kQwen3Sight},
    {"Qwen3-VL-30B-A3B-Instruct", "qwen3_vl_moe", "31.071", "0.539", 98304, "62.14", kQwen3Sight},
    {"Qwen3-VL-235B-A22B-Instruct",
     "qwen3_vl_moe",
     "235.670",
     "0.576",
     192512,
     "471.34",
     kQwen3Sight},
    {"Qwen2.5-7B-Instruct", "qwen2", "7.616", "0.000", 57344, "15.23"},
    {"Qwen3-4B", "qwen3", "4.022", "0.000", 147456, "8.04"},
    {"Qwen3-30B-A3B", "qwen3_moe", "30.532", "0.000", 98304, "61.06"},
    {"Qwen2.5-VL-3B-Instruct-4bit", "qwen2_5_vl", "3.755", "0.669", 36864, "3.07", kQwen2Sight},
    {"Qwen3-VL-4B-Instruct-4bit", "qwen3_vl", "4.438", "0.415", 147456, "3.09", kQwen3Sight},
    {"Qwen3-VL-30B-A3B-Instruct-4bit",
     "qwen3_vl_moe",
     "31.071",
     "0.539",
     98304,
     "18.26",
     kQwen3Sight},
});

std::string in_billions(uint64_t count, int digits) {
  return fmt::format("{:.{}f}", static_cast<double>(count) / 1e9, digits);
}

/// The checkpoint's folder, gone with this.
struct Dry {
  explicit Dry(std::string_view model, const std::vector<std::string>& flags = {}) {
    std::vector<std::string> arguments = {
        "--out", folder.path().string(), "--model", std::string(model)
    };
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    test::run_tool("make_published_shapes.py", arguments);
    config = read_model_config(folder.path() / model);
  }

  test::TemporaryFolder folder;
  ModelConfig config;
};

uint64_t tower_parameters(const std::filesystem::path& folder) {
  uint64_t parameters = 0;
  for (const WeightFile& file : find_weight_files(folder)) {
    for (const TensorInfo& tensor : file.tensors) {
      const bool of_tower = tensor.name.find("visual.") != std::string::npos ||
                            tensor.name.starts_with("vision_tower.");
      parameters += of_tower ? tensor.bytes() / dtype_bytes(tensor.dtype) : 0;
    }
  }
  return parameters;
}

/// The axis of each rotary frequency: one run an axis, or axes in turn until one is used up.
std::vector<int> expected_axes(const std::optional<Sight>& sight) {
  std::vector<int> axes(64, 0);
  for (int i = 0; sight && i < 64; ++i) {
    const auto& [time, height, width] = sight->section;
    const int run = i < time ? 0 : i < time + height ? 1 : 2;
    const int turn = i % 3 != 0 && i < 3 * sight->section[static_cast<size_t>(i % 3)] ? i % 3 : 0;
    axes[static_cast<size_t>(i)] = sight->interleaved ? turn : run;
  }
  return axes;
}

class PublishedShapes : public testing::TestWithParam<Published> {};

TEST_P(PublishedShapes, load_whole_and_count_as_published) {
  const Published& published = GetParam();
  const Dry dry(published.model);
  mx::reset_peak_memory();
  Checkpoint checkpoint(dry.config);
  const CheckpointSummary summary = checkpoint.summary();
  EXPECT_EQ(in_billions(summary.parameters, 3), published.billions);
  EXPECT_EQ(in_billions(summary.bytes, 2), published.gigabytes);
  EXPECT_EQ(in_billions(tower_parameters(dry.config.folder), 3), published.vision_billions);

  const test::LazyOps ops;
  uint64_t loaded = 0;
  const nn::WeightLoader loader(checkpoint, ops, [&loaded](uint64_t bytes) { loaded += bytes; });
  const Model model = find_family(dry.config.model_type).load(dry.config, loader);
  EXPECT_NO_THROW(checkpoint.require_all_taken());
  EXPECT_EQ(loaded, summary.bytes);
  EXPECT_TRUE(checkpoint.warnings().empty()) << checkpoint.warnings().front();
  EXPECT_EQ(model.config().rope_axes, expected_axes(published.sight));
  EXPECT_LT(mx::get_peak_memory(), uint64_t{1} << 20) << "weights were read";
}

TEST_P(PublishedShapes, configuration_is_understood) {
  const Published& published = GetParam();
  const ModelConfig config = Dry(published.model).config;
  EXPECT_EQ(config.model_type, published.model_type);
  EXPECT_EQ(config.eos_token_ids, (std::vector<int64_t>{151645, 151643}));

  const Family& family = find_family(config.model_type);
  const ModelShape shape = family.shape(config);
  const ops::KVFormat bf16 = ops::kv_format(0, mx::bfloat16, shape.heads.head_dim);
  const int rows = nn::KVCache::kStep;
  const uint64_t kv_bytes = nn::kv_cache_bytes(shape.layers, shape.heads, bf16, rows);
  EXPECT_EQ(kv_bytes, rows * published.kv_bytes);

  const std::optional<MediaRules> rules = family.media_rules(config);
  ASSERT_EQ(rules.has_value(), published.sight.has_value());
  EXPECT_EQ(shape.vision.has_value(), published.sight.has_value());
  if (rules) {
    EXPECT_EQ(rules->image_bounds.min_pixels, published.sight->bounds.min_pixels);
    EXPECT_EQ(rules->image_bounds.max_pixels, published.sight->bounds.max_pixels);
    EXPECT_EQ(rules->image_token_id, 151655);
    EXPECT_EQ(rules->video_token_id, 151656);
  }
}

std::string test_name(const testing::TestParamInfo<Published>& info) {
  std::string name(info.param.model);
  std::ranges::replace_if(name, [](char character) { return std::isalnum(character) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Hub, PublishedShapes, testing::ValuesIn(kModels), test_name);

/// Matrices whose columns no group divides stay plain: 4304 and 3420.
TEST(PackedTower, loads_beside_plain_matrices) {
  for (const auto& [model, packed, plain] :
       {std::tuple{"Qwen3-VL-30B-A3B-Instruct-4bit", "pos_embed", "blocks.0.mlp.linear_fc2"},
        std::tuple{"Qwen2.5-VL-3B-Instruct-4bit", "merger.mlp.2", "blocks.0.mlp.down_proj"}}) {
    const Dry dry(model, {"--packed-tower"});
    Checkpoint checkpoint(dry.config);
    EXPECT_TRUE(checkpoint.has(fmt::format("visual.{}.scales", packed)));
    EXPECT_FALSE(checkpoint.has(fmt::format("visual.{}.scales", plain)));
    const test::LazyOps ops;
    const nn::WeightLoader loader(checkpoint, ops, [](uint64_t) {});
    find_family(dry.config.model_type).load(dry.config, loader);
    EXPECT_NO_THROW(checkpoint.require_all_taken());
  }
}

TEST(PublishedTotals, are_exact) {
  constexpr auto kTotals = std::to_array<std::pair<std::string_view, uint64_t>>({
      {"Qwen2.5-VL-7B-Instruct", 8292166656},
      {"Qwen2.5-VL-32B-Instruct", 33452718336},
      {"Qwen3-VL-2B-Instruct", 2127532032},
      {"Qwen3-VL-4B-Instruct", 4437815808},
      {"Qwen3-VL-8B-Instruct", 8767123696},
  });
  for (const auto& [model, parameters] : kTotals) {
    const Dry dry(model);
    const CheckpointSummary summary = Checkpoint(dry.config).summary();
    EXPECT_EQ(summary.parameters, parameters) << model;
    EXPECT_EQ(summary.bytes, 2 * parameters) << model;
  }
}

TEST(PublishedTotals, tensors_are_as_many) {
  const Dry dry("Qwen3-VL-4B-Instruct");
  const CheckpointSummary summary = Checkpoint(dry.config).summary();
  EXPECT_EQ(summary.tensors, 713);
  EXPECT_EQ(summary.bytes, 8875631616);
  EXPECT_EQ(tower_parameters(dry.config.folder) * 2, 830695424);
}

}  // namespace
}  // namespace whimbrel
