// Bytes and multiply-adds by shapes, held against figures computed by hand from published sizes.

#include "engine/bench_work.h"

#include <gtest/gtest.h>

#include "engine/bench_rows.h"
#include "models/family.h"
#include "models/published.h"
#include "tests/support/lazy_ops.h"

namespace whimbrel {
namespace {

/// The work of published dims, loaded dry.
ModelWork work_of(std::string_view dims) {
  static const test::LazyOps ops;
  const RandomModel random = random_model(dims);
  Checkpoint checkpoint = random.checkpoint();
  const nn::WeightLoader loader(checkpoint, ops, [](uint64_t) {});
  const Model model = find_family(random.config.model_type).load(random.config, loader);
  const ops::KVFormat kv = ops::kv_format(0, mx::bfloat16, model.config().attention.heads.head_dim);
  return model_work(checkpoint, model.config(), kv, 4);
}

/// Megabytes of matrices that a step reads, bytes of keys and values a token, and 10^9
/// multiply-adds a token.
struct Expected {
  std::string_view dims;
  double megabytes;
  uint64_t kv_bytes;
  double gmac;
};

TEST(ModelWork, equals_figures_by_hand) {
  constexpr auto kExpected = std::to_array<Expected>({
      {"qwen2-vl-2b:4bit", 868.3, 28672, 1.54},
      {"qwen2.5-vl-3b:4bit", 1735.7, 36864, 3.09},
      {"qwen3-vl-4b:4bit", 2262.5, 147456, 4.02},
      {"qwen2.5-vl-3b:bf16", 6171.4, 36864, 3.09},
      {"qwen3-4b:4bit", 2262.5, 147456, 4.02},
  });
  for (const Expected& expected : kExpected) {
    const ModelWork work = work_of(expected.dims);
    // Norms and biases come on top of the matrices: less than a thousandth.
    const double megabytes = step_bytes(work, 1, 0) / 1e6;
    EXPECT_GE(megabytes, expected.megabytes - 0.05) << expected.dims;
    EXPECT_LE(megabytes, expected.megabytes * 1.001) << expected.dims;
    EXPECT_EQ(work.kv_bytes, expected.kv_bytes) << expected.dims;
    EXPECT_NEAR((work.layer_macs + work.head_macs) / 1e9, expected.gmac, 0.005) << expected.dims;
  }
}

/// 28 layers of 3584 x (3584 + 512 + 512 + 3584 + 3 x 18944) and a head of 152064 x 3584, at 4.5
/// bits: the embedding table of an untied model is not read.
TEST(ModelWork, leaves_an_untied_embedding_out) {
  const double numbers = 28.0 * 3584 * (3584 + 512 + 512 + 3584 + 3.0 * 18944) + 152064.0 * 3584;
  const double bytes = step_bytes(work_of("qwen2.5-7b:4bit"), 1, 0);
  EXPECT_NEAR(bytes, numbers * 4.5 / 8, 0.001 * bytes);
}

/// 8 of 128 experts of 3 x 2048 x 768 in each of 12 layers.
TEST(ModelWork, counts_chosen_experts_only) {
  const ModelWork work = work_of("qwen3-vl-30b-a3b:4bit");
  const double expert = 3.0 * 2048 * 768 * 4.5 / 8;
  EXPECT_DOUBLE_EQ(static_cast<double>(work.expert_bytes), 12 * 128 * expert);
  EXPECT_DOUBLE_EQ(
      step_bytes(work, 1, 0) - step_bytes(work, 0, 0) - static_cast<double>(work.row_bytes),
      12 * 8 * expert
  );
  // Two rows choose 16 of 128 less those that both chose.
  const double two =
      step_bytes(work, 2, 0) - step_bytes(work, 0, 0) - 2.0 * static_cast<double>(work.row_bytes);
  EXPECT_DOUBLE_EQ(two, 12 * 128 * expert * (1 - std::pow(120.0 / 128, 2)));
}

TEST(StepBytes, reads_weights_once_and_each_row_s_cache) {
  const ModelWork work = {.shared_bytes = 1000, .row_bytes = 10, .kv_bytes = 3};
  EXPECT_EQ(step_bytes(work, 1, 0), 1010);
  EXPECT_EQ(step_bytes(work, 1, 100), 1310);
  EXPECT_EQ(step_bytes(work, 4, 100), 1000 + 4 * 310);
}

TEST(PrefillMacs, counts_what_each_token_sees_and_one_head) {
  const ModelWork work = {.layer_macs = 100, .head_macs = 7, .attention_macs = 2};
  EXPECT_EQ(prefill_macs(work, 1, 0), 100 + 2 + 7);
  EXPECT_EQ(prefill_macs(work, 3, 10), 3 * 100 + 2 * (11 + 12 + 13) + 7);
}

BenchProbe probe(double read_gb_s, double peak) {
  return {
      .reads = {{.gb_s = 2 * read_gb_s}, {.gb_s = read_gb_s}, {.gb_s = 0.1 * read_gb_s}},
      .peaks = {{{"slow", true, 1, 1}, {"fast", true, 1, peak}}}
  };
}

TEST(BenchRows, follow_from_samples) {
  const ModelWork work = {
      .shared_bytes = 1'000'000, .kv_bytes = 1000, .layer_macs = 1e6, .head_macs = 1e6
  };
  const std::vector<BenchSamples> samples = {
      {.cell = {.tokens = 3, .depth = 100}, .ms = {{2, 1, 2}, {2, 3, 2}}},
      {.cell = {.tokens = 3, .depth = 600}, .ms = {{4, 4, 4}}},
      {.cell = {.tokens = 3, .depth = 100, .rows = 4}, .ms = {{8, 8, 8}}},
      {.cell = {.kind = BenchKind::prefill, .tokens = 10}, .ms = {{5}, {10}}},
  };
  const std::vector<BenchRow> rows = bench_rows(samples, work, probe(1, 10), 0);
  EXPECT_EQ(rows[0].ms, 2);
  EXPECT_EQ(rows[0].ms_min, 1);
  EXPECT_EQ(rows[0].ms_max, 3);
  EXPECT_EQ(rows[0].repetitions, 2);
  EXPECT_EQ(rows[0].samples, (std::vector<double>{2, 1, 2, 2, 3, 2}));
  EXPECT_EQ(*rows[0].tok_s, 500);
  EXPECT_DOUBLE_EQ(*rows[0].tok_s_mean, (600 + 3000.0 / 7) / 2);
  EXPECT_EQ(*rows[0].bytes_per_token, 1'000'000 + 102 * 1000);
  EXPECT_DOUBLE_EQ(*rows[0].bandwidth_fraction, 1'102'000 / 0.002 / 1e9);
  EXPECT_EQ(*rows[0].delta_ms, 0);
  EXPECT_EQ(*rows[1].delta_ms, 2);
  EXPECT_DOUBLE_EQ(*rows[1].delta_floor_ms, 500 * 1000 / 1e9 * 1000);
  EXPECT_EQ(*rows[2].tok_s, 500);
  EXPECT_EQ(*rows[2].bytes_per_token, 1'000'000 / 4.0 + 102 * 1000);
  EXPECT_EQ(*rows[2].delta_ms, 0) << "another number of rows is another curve";
  EXPECT_DOUBLE_EQ(*rows[3].tok_s, 10 / 0.0075);
  EXPECT_FALSE(rows[3].delta_ms.has_value());
  EXPECT_FALSE(rows[3].bytes_per_token.has_value());
  EXPECT_DOUBLE_EQ(*rows[3].peak_fraction, 11e6 / 0.0075 / 10e9);
}

}  // namespace
}  // namespace whimbrel
