// Work by shapes, held against figures computed by hand, and the notice for a made-up rate.

#include "engine/prefill_estimate.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <algorithm>

#include "models/published.h"
#include "tests/support/lazy_ops.h"

namespace whimbrel {
namespace {

PrefillWork work_of(std::string_view dims, const Prompt& prompt) {
  const RandomModel random = random_model(dims);
  const ModelShape shape = find_family(random.config.model_type).shape(random.config);
  return prefill_work(shape, random.checkpoint(), prompt);
}

Prompt prompt_of(int tokens) {
  Prompt prompt;
  prompt.ids.resize(static_cast<size_t>(tokens));
  return prompt;
}

/// A picture of `side` patches a side in front of 10 tokens.
Prompt picture_of(int side) {
  const int tokens = side * side / 4;
  Prompt prompt = prompt_of(tokens + 10);
  MediaSpan span{.source = "p", .runs = {{.first = 0, .tokens = tokens}}};
  span.patches.count = int64_t{side} * side;
  span.patches.grid_thw = {1, side, side};
  prompt.media.push_back(std::move(span));
  return prompt;
}

/// 36 layers of 2048 x (2048 + 256 + 256 + 2048 + 3 x 11008), attention over half of the tokens,
/// one head of 151936 x 2048.
TEST(PrefillWork, of_a_text_equals_figures_by_hand) {
  const PrefillWork work = work_of("qwen2.5-vl-3b:4bit", prompt_of(1000));
  const double layer = 2048.0 * (2048 + 256 + 256 + 2048 + 3 * 11008);
  const double attention = 2.0 * 2048 * 1001 / 2;
  EXPECT_NEAR(work.decoder_macs, 1000 * 36 * (layer + attention) + 151936.0 * 2048, 1e6);
  EXPECT_EQ(work.tower_macs, 0);
  EXPECT_EQ(work.tokens, 1000);
  EXPECT_EQ(work.media, 0);
}

/// 32 blocks of 1280 x (4 x 1280 + 3 x 3420), of which 4 see the whole picture.
TEST(PrefillWork, of_a_picture_counts_attention_where_it_sees_all) {
  const PrefillWork work = work_of("qwen2.5-vl-3b:4bit", picture_of(72));
  const double patches = 72 * 72;
  const double matrices = 32.0 * 1280 * (4 * 1280 + 3 * 3420);
  const double attention = 4 * 2.0 * 1280 * patches;
  EXPECT_NEAR(work.tower_macs / (patches * (matrices + attention)), 1, 0.03);
  EXPECT_EQ(work.patches, 72 * 72);
  EXPECT_EQ(work.media, 1);
}

TEST(PrefillWork, counts_windows_and_whole_pictures_apart) {
  const auto grown = [](std::string_view dims) {
    const double once = work_of(dims, picture_of(32)).tower_macs;
    const double twice = work_of(dims, picture_of(64)).tower_macs;
    return (twice - 4 * once) / (2.0 * 1280 * (64.0 * 64 * 64 * 64 - 4.0 * 32 * 32 * 32 * 32));
  };
  EXPECT_NEAR(grown("qwen2.5-vl-3b:4bit"), 4, 1e-6) << "blocks that see the whole picture";
  EXPECT_NEAR(grown("qwen2-vl-2b:4bit"), 32, 1e-6);
}

/// Frames of a video don't see each other.
TEST(PrefillWork, of_a_video_is_that_of_its_frames) {
  const Prompt picture = picture_of(32);
  Prompt video = picture_of(32);
  video.media[0].patches.count *= 3;
  video.media[0].patches.grid_thw[0] = 3;
  video.media[0].runs[0].tokens *= 3;
  EXPECT_NEAR(
      work_of("qwen2-vl-2b:4bit", video).tower_macs /
          work_of("qwen2-vl-2b:4bit", picture).tower_macs,
      3,
      1e-9
  );
}

TEST(PrefillSeconds, adds_tower_and_decoder) {
  const PrefillWork work{.tower_macs = 100, .decoder_macs = 60};
  EXPECT_DOUBLE_EQ(prefill_seconds(work, {.tower = 50, .decoder = 20}), 5);
}

TEST(PrefillSeconds, short_work_is_not_worth_a_measurement) {
  EXPECT_FALSE(may_take_long({.tower_macs = 1e9, .decoder_macs = 1e9}));
  EXPECT_TRUE(may_take_long({.tower_macs = 1e12, .decoder_macs = 1e9}));
}

TEST(LongPrefillText, says_how_long_why_and_what_to_do) {
  const PrefillWork text{.tokens = 12345};
  EXPECT_EQ(
      long_prefill_text(text, 24.6),
      "about 25 s until the first token (12,345 prompt tokens); a shorter prompt takes less"
  );
  const PrefillWork picture{.tokens = 999, .media = 1, .patches = 5329};
  EXPECT_EQ(
      long_prefill_text(picture, 127),
      "about 130 s until the first token (999 prompt tokens, 1 picture or video of 5,329 patches); "
      "smaller pictures take less (--max-pixels)"
  );
}

/// Returns its input: a product that takes no time.
class CountingOps : public test::LazyOps {
 public:
  ops::PackedMatrixPtr pack(ops::Matrix matrix) const override {
    bits.push_back(matrix.quantization ? matrix.quantization->bits : 16);
    return LazyOps::pack(std::move(matrix));
  }
  ops::mx::array linear(const ops::Activations& x, const ops::PackedMatrix&) const override {
    most_rows.resize(bits.size());
    most_rows.back() = std::max(most_rows.back(), x.prefill);
    return x.rows;
  }
  mutable std::vector<int> bits;
  mutable std::vector<int> most_rows;  // of a prompt, for each matrix
};

TEST(PrefillRates, are_measured_in_the_form_of_the_checkpoint) {
  const auto measured = [](std::string_view dims) {
    const CountingOps ops;
    const PrefillRates rates = measure_prefill_rates(ops, random_model(dims).checkpoint());
    EXPECT_GT(rates.tower, 0) << dims;
    EXPECT_GT(rates.decoder, 0) << dims;
    return ops.bits;
  };
  EXPECT_EQ(measured("qwen2.5-vl-3b:4bit"), (std::vector{4, 16}));
  EXPECT_EQ(measured("qwen2.5-vl-3b:8bit"), (std::vector{8, 16}));
  EXPECT_EQ(measured("qwen2.5-vl-3b:bf16"), (std::vector{16, 16}));
  EXPECT_EQ(measured("qwen3-4b:4bit"), std::vector{4});
}

/// Rows of experts are never rounded, which those of a dense matrix are where that is faster.
TEST(PrefillRates, of_experts_are_those_of_exact_rows) {
  const auto most_rows = [](std::string_view dims) {
    const CountingOps ops;
    measure_prefill_rates(ops, random_model(dims).checkpoint());
    return ops.most_rows;
  };
  EXPECT_EQ(most_rows("qwen3-vl-30b-a3b:4bit").front(), 0);
  EXPECT_GE(most_rows("qwen3-vl-30b-a3b:4bit").back(), 32) << "the tower";
  EXPECT_GE(most_rows("qwen3-vl-4b:4bit").front(), 32);
}

}  // namespace
}  // namespace whimbrel
