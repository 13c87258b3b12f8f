#include "engine/memory_estimate.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include "base/error.h"
#include "engine/engine.h"
#include "tests/support/reference.h"

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

TEST(MemoryEstimate, weights_are_what_loading_takes) {
  for (const char* name : {"tiny-qwen2-5-vl", "tiny-qwen2-5-vl-4bit"}) {
    const Loaded model = load(name);
    const MemoryEstimate estimate =
        estimate_memory(model.frontend, model.summary, mx::float32, Prompt{}, GenerateOptions{});
    const size_t before = mx::get_active_memory();
    Checkpoint checkpoint(model.frontend.config);
    const Engine engine(
        model.frontend,
        checkpoint,
        ops::make_reference_ops(mx::float32, ops::Arithmetic::float32),
        LoadEvents{}
    );
    const auto taken = static_cast<double>(mx::get_active_memory() - before);
    EXPECT_NEAR(taken / static_cast<double>(estimate.weights), 1.0, 0.03) << name;
  }
}

TEST(MemoryEstimate, both_forms_of_a_model_have_the_same_parameters) {
  EXPECT_EQ(
      load("tiny-qwen2-5-vl").summary.parameters, load("tiny-qwen2-5-vl-4bit").summary.parameters
  );
}

TEST(MemoryEstimate, grows_with_the_answer) {
  const Loaded model = load("tiny-qwen2-5-vl-4bit");
  const auto cache = [&model](int max_tokens) {
    return estimate_memory(
               model.frontend, model.summary, mx::float32, Prompt{}, {.max_tokens = max_tokens}
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
