#include "engine/memory_estimate.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include "base/error.h"
#include "engine/engine.h"
#include "ops/device.h"
#include "tests/support/loaded_model.h"
#include "tests/support/reference.h"
#include "tests/support/tiny_model.h"

namespace whimbrel::test {
namespace {

struct Loaded {
  Frontend frontend;
  CheckpointSummary summary;
};

Loaded load(const char* name) {
  Frontend frontend = load_frontend(bundled_model(name));
  const CheckpointSummary summary = Checkpoint(frontend.config).summary();
  return {std::move(frontend), summary};
}

/// Bytes that operations hold, in MLX's memory and in their own.
size_t held(const ops::Ops& ops) {
  return mx::get_active_memory() + ops.own_bytes();
}

class MemoryEstimateOf : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<const ops::Ops> make_ops() const {
    return ops::make_ops(GetParam(), mx::bfloat16);
  }

  /// Kernels' own memory depends on the instruction set, and weighs little with real models.
  double slack() const { return std::string_view(GetParam()) == "reference" ? 0.05 : 0.2; }

  /// `peak()` is asked again where it is lower: on a busy machine MLX may give memory back before
  /// it asks for more.
  template <typename Peak>
  void expect_near(double predicted, const Peak& peak) const {
    constexpr int kTries = 4;
    double highest = peak();
    for (int i = 1; i < kTries && predicted > (1 + slack()) * highest; ++i) {
      highest = std::max(highest, peak());
    }
    EXPECT_NEAR(predicted / highest, 1, slack());
  }
};

TEST_P(MemoryEstimateOf, weights_are_what_loading_takes) {
  for (const char* name : {"tiny-qwen2-5-vl", "tiny-qwen2-5-vl-4bit"}) {
    const Loaded model = load(name);
    std::unique_ptr<const ops::Ops> ops = make_ops();
    const MemoryEstimate estimate =
        estimate_memory(model.frontend.shape, model.summary, *ops, Prompt{}, GenerateOptions{});
    const size_t before = held(*ops);
    Checkpoint checkpoint(model.frontend.config);
    const Engine engine(model.frontend, checkpoint, std::move(ops), LoadEvents{});
    const auto taken = static_cast<double>(held(engine.ops()) - before);
    EXPECT_NEAR(taken / static_cast<double>(estimate.weights), 1.0, 0.03) << name;
  }
}

/// Bytes that were held at most while a prompt was answered, the weights among them.
double peak_of(const LoadedModel& model, size_t before_load, const Prompt& prompt, int max_tokens) {
  mx::reset_peak_memory();
  const GenerateOptions options{.sampling = {.temperature = 0}, .max_tokens = max_tokens};
  generate(model.model(), model.frontend.tokenizer, prompt, options, {});
  const size_t own = model.engine.ops().own_bytes();
  return static_cast<double>(mx::get_peak_memory() + own - before_load);
}

double predicted(const LoadedModel& model, const Prompt& prompt, int max_tokens) {
  const MemoryEstimate estimate = estimate_memory(
      model.frontend.shape,
      model.checkpoint.summary(),
      model.engine.ops(),
      prompt,
      {.max_tokens = max_tokens}
  );
  return static_cast<double>(estimate.total());
}

TEST_P(MemoryEstimateOf, peaks_are_predicted) {
  std::string story;
  for (int i = 0; i < 250; ++i) {
    story += " The code of the tiger is 960.";
  }
  for (const char* name :
       {"tiny-qwen2-5-vl-4bit",
        "tiny-qwen2-vl-4bit",
        "tiny-qwen3-vl-4bit",
        "tiny-qwen3-vl-moe-4bit"}) {
    for (const std::string& text : {std::string("Describe this."), story}) {
      const size_t before = mx::get_active_memory();
      SCOPED_TRACE(std::string(name) + ", " + std::to_string(text.size()) + " bytes of text");
      const LoadedModel model(bundled_model(name), GetParam());
      const Prompt prompt = model.prompt({"tests/golden/reference/media/big.png"}, text);
      expect_near(predicted(model, prompt, 4), [&] { return peak_of(model, before, prompt, 4); });
    }
  }
}

/// 16,384 tokens in chunks of 512: no more than weights, cache and one tile of 512 x 16,384 scores
/// a head, whatever the prompt's length is beside that.
TEST_P(MemoryEstimateOf, a_long_prompt_stays_within_its_bound) {
  const size_t before = mx::get_active_memory();
  const LoadedModel model(tiny_model("qwen2"), GetParam());
  Prompt prompt;
  for (int i = 0; i < 16384; ++i) {
    prompt.ids.push_back(100 + i % 700);
  }
  prompt.positions = nn::mrope_positions(prompt.tokens(), {});
  double peak = 0;
  expect_near(predicted(model, prompt, 1), [&] {
    peak = peak_of(model, before, prompt, 1);
    return peak;
  });
  const double tile = 512.0 * 16384 * model.frontend.shape.heads.heads * sizeof(float);
  EXPECT_LT(peak, 1.4 * tile);
}

INSTANTIATE_TEST_SUITE_P(
    Backends, MemoryEstimateOf, testing::Values("reference", "cpu"), [](const auto& tested) {
      return std::string(tested.param);
    }
);

/// Rows of bytes take less than what is predicted for wider ones, but not much.
TEST(MemoryEstimate, holds_for_prompts_in_8_bits) {
  if (ops::backend_name() != "cpu") {
    GTEST_SKIP() << "on a GPU";
  }
  std::string story;
  for (int i = 0; i < 250; ++i) {
    story += " The code of the tiger is 960.";
  }
  const size_t before = mx::get_active_memory();
  const LoadedModel model(
      bundled_model("tiny-qwen2-5-vl-4bit"),
      ops::make_ops("cpu", mx::bfloat16, {.prefill_int8 = true})
  );
  const Prompt prompt = model.prompt({"tests/golden/reference/media/big.png"}, story);
  const double peak = peak_of(model, before, prompt, 4);
  EXPECT_NEAR(predicted(model, prompt, 4) / peak, 1, 0.2);
}

TEST(MemoryEstimate, both_forms_of_a_model_have_the_same_parameters) {
  EXPECT_EQ(
      load("tiny-qwen2-5-vl").summary.parameters, load("tiny-qwen2-5-vl-4bit").summary.parameters
  );
}

TEST(MemoryEstimate, grows_with_the_answer) {
  const Loaded model = load("tiny-qwen2-5-vl-4bit");
  const auto ops = ops::make_ops("reference", mx::float32);
  const auto cache = [&](int max_tokens) {
    return estimate_memory(
               model.frontend.shape, model.summary, *ops, Prompt{}, {.max_tokens = max_tokens}
    )
        .kv_cache;
  };
  EXPECT_EQ(cache(2048), 8 * cache(256));
}

TEST(MemoryEstimate, too_much_is_refused_with_the_figures) {
  EXPECT_NO_THROW(require_memory({.weights = 1000}));
  try {
    require_memory({.weights = uint64_t{1} << 60});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::memory);
    EXPECT_NE(std::string(error.what()).find("1073741824.0 GiB"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("--force"), std::string::npos);
  }
}

TEST(SizeText, picks_a_unit) {
  EXPECT_EQ(size_text(uint64_t{5} << 20), "5.0 MiB");
  EXPECT_EQ(size_text(uint64_t{3} << 29), "1.5 GiB");
}

}  // namespace
}  // namespace whimbrel::test
