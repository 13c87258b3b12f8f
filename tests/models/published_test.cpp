// Models of published sizes with random weights, loaded dry: nothing is drawn.

#include "models/published.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mlx/memory.h>
#include <mlx/mlx.h>

#include "models/family.h"
#include "tests/support/lazy_ops.h"

namespace whimbrel {
namespace {

/// As the files on the hub: parameters in billions, bytes of the weights in GB.
struct Expected {
  std::string_view dims;
  std::string_view billions;
  std::string_view gigabytes;
};

constexpr auto kExpected = std::to_array<Expected>({
    {"qwen2-vl-2b:bf16", "2.209", "4.42"},
    {"qwen2-vl-2b", "2.209", "2.20"},
    {"qwen2.5-vl-3b:bf16", "3.755", "7.51"},
    {"qwen2.5-vl-3b:4bit", "3.755", "3.07"},
    {"qwen3-vl-4b:bf16", "4.438", "8.88"},
    {"qwen3-vl-4b:4bit", "4.438", "3.09"},
    {"qwen3-4b:bf16", "4.022", "8.04"},
    {"qwen2.5-7b:bf16", "7.616", "15.23"},
});

std::string in_billions(uint64_t count, int digits) {
  return fmt::format("{:.{}f}", static_cast<double>(count) / 1e9, digits);
}

Model load_dry(const RandomModel& random, Checkpoint& checkpoint) {
  static const test::LazyOps ops;
  const nn::WeightLoader loader(checkpoint, ops, [](uint64_t) {});
  Model model = find_family(random.config.model_type).load(random.config, loader);
  checkpoint.require_all_taken();
  return model;
}

TEST(RandomModel, counts_as_published) {
  for (const auto& [dims, billions, gigabytes] : kExpected) {
    const CheckpointSummary summary = random_model(dims).checkpoint().summary();
    EXPECT_EQ(in_billions(summary.parameters, 3), billions) << dims;
    EXPECT_EQ(in_billions(summary.bytes, 2), gigabytes) << dims;
  }
}

TEST(RandomModel, loads_whole_and_draws_nothing_before_it_must) {
  mx::reset_peak_memory();
  for (const PublishedDims& dims : published_dims()) {
    for (const std::string_view form : {"4bit", "8bit", "bf16"}) {
      const RandomModel random = random_model(fmt::format("{}:{}", dims.name, form));
      Checkpoint checkpoint = random.checkpoint();
      EXPECT_EQ(load_dry(random, checkpoint).config().num_hidden_layers, dims.kept_layers);
      EXPECT_TRUE(checkpoint.warnings().empty()) << checkpoint.warnings().front();
    }
  }
  EXPECT_LT(mx::get_peak_memory(), uint64_t{1} << 20) << "weights were drawn";
}

TEST(RandomModel, refuses_unknown_names_and_forms) {
  for (const char* dims : {"", "gpt", "qwen3-vl-4b:", "qwen3-vl-4b:3bit", ":4bit", "qwen3-vl"}) {
    try {
      random_model(dims);
      FAIL() << dims;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::usage);
      EXPECT_NE(std::string(error.what()).find("qwen2.5-vl-3b"), std::string::npos);
    }
  }
}

/// Standard deviation of a matrix's numbers, and their mean.
struct Spread {
  double mean;
  double deviation;
};

Spread spread(const mx::array& numbers) {
  const mx::array wide = mx::astype(numbers, mx::float32);
  const double mean = mx::mean(wide).item<float>();
  return {mean, mx::std(wide).item<float>()};
}

TEST(RandomModel, packed_and_plain_matrices_have_the_same_spread) {
  for (const std::string_view form : {"4bit", "8bit", "bf16"}) {
    Checkpoint checkpoint = random_model(fmt::format("qwen2-vl-2b:{}", form)).checkpoint();
    const StoredMatrix stored =
        checkpoint.take_matrix("model.layers.3.self_attn.q_proj", 1536, 1536);
    const mx::array numbers =
        stored.bits == 0
            ? stored.weight
            : mx::dequantize(
                  stored.weight, *stored.scales, stored.biases, stored.group_size, stored.bits
              );
    const Spread found = spread(numbers);
    const double expected = 1 / std::sqrt(1536.0);
    EXPECT_NEAR(found.deviation, expected, 0.02 * expected) << form;
    EXPECT_NEAR(found.mean, 0, 0.01 * expected) << form;
  }
}

}  // namespace
}  // namespace whimbrel
