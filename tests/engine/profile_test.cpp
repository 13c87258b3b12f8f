// What a decode step costs: nothing of it may grow with the context but what attention reads.

#include "generate/profile.h"

#include <gtest/gtest.h>

#include <mlx/mlx.h>

#include <utility>

#include "base/error.h"
#include "tests/support/loaded_model.h"
#include "tests/support/reference.h"

namespace whimbrel::test {
namespace {

class ProfileTest : public testing::Test {
 protected:
  ProfileTest()
      : loaded_(bundled_model("tiny-qwen2-5-vl-4bit")),
        filler_(loaded_.frontend.tokenizer.encode_text("The heron waits.")) {}

  Prompt picture_prompt() const { return loaded_.prompt({"examples/shapes.png"}, ""); }

  std::vector<StepProfile> profile(const Prompt& prompt, std::vector<int> contexts) const {
    return profile_steps(
        loaded_.model(), prompt, filler_, {.contexts = std::move(contexts), .steps = 2}
    );
  }

  uint64_t cache_bytes_per_token() const {
    const ModelShape& shape = loaded_.frontend.shape;
    return 2ULL * static_cast<uint64_t>(shape.layers) *
           static_cast<uint64_t>(shape.heads.kv_heads) *
           static_cast<uint64_t>(shape.heads.head_dim) *
           mx::size_of(loaded_.engine.ops().kv_dtype());
  }

  void expect_flat(const StepProfile& near, const StepProfile& far) const {
    EXPECT_GT(near.nodes, loaded_.frontend.shape.layers);
    EXPECT_EQ(near.nodes, far.nodes);
    EXPECT_EQ(near.own_launches, far.own_launches);
    EXPECT_EQ(near.bytes.weights, far.bytes.weights);
    EXPECT_EQ(near.bytes.inputs, far.bytes.inputs);
    const auto tokens = static_cast<uint64_t>(far.context - near.context);
    EXPECT_EQ(far.bytes.cache - near.bytes.cache, tokens * cache_bytes_per_token());
    EXPECT_EQ(near.bytes.cache, static_cast<uint64_t>(near.context + 1) * cache_bytes_per_token());
  }

  LoadedModel loaded_;
  std::vector<int32_t> filler_;
};

TEST_F(ProfileTest, only_the_cache_grows) {
  const std::vector<StepProfile> steps = profile({}, {64, 700});
  expect_flat(steps[0], steps[1]);
  EXPECT_EQ(steps[0].context, 64);
  EXPECT_EQ(steps[1].context, 700);
  for (const StepProfile& step : steps) {
    EXPECT_GT(step.host_ms, 0);
    EXPECT_GT(step.device_ms, 0);
    EXPECT_GT(step.active_memory + loaded_.engine.ops().own_bytes(), step.bytes.weights);
  }
}

TEST_F(ProfileTest, a_full_buffer_is_not_seen) {
  // At these contexts a step would first have to make the cache larger.
  const std::vector<StepProfile> steps = profile({}, {255, 256, 512});
  expect_flat(steps[0], steps[1]);
  expect_flat(steps[1], steps[2]);
}

TEST_F(ProfileTest, a_step_behind_a_picture_costs_the_same) {
  const std::vector<StepProfile> text = profile({}, {100});
  const std::vector<StepProfile> picture = profile(picture_prompt(), {100});
  EXPECT_EQ(picture[0].nodes, text[0].nodes);
  EXPECT_EQ(picture[0].ops, text[0].ops);
  EXPECT_EQ(picture[0].bytes.activations, text[0].bytes.activations);
  EXPECT_EQ(picture[0].bytes.cache, text[0].bytes.cache);
}

TEST_F(ProfileTest, weights_are_the_decoders) {
  // All of the decoder's numbers as they are packed, nothing of the tower.
  const uint64_t weights = profile({}, {64})[0].bytes.weights;
  const CheckpointSummary summary = loaded_.checkpoint.summary();
  const uint64_t packed = loaded_.engine.ops().weight_bytes({summary.bytes, summary.parameters});
  EXPECT_GT(weights, packed / 4);
  EXPECT_LT(weights, packed);
}

TEST_F(ProfileTest, each_weight_is_read_once_a_token) {
  if (loaded_.engine.ops_name() != "cpu") {
    GTEST_SKIP() << "weights as " << loaded_.engine.ops_name() << " packs them";
  }
  const ModelShape& shape = loaded_.frontend.shape;
  const auto hidden = static_cast<uint64_t>(shape.hidden_size);
  const auto layers = static_cast<uint64_t>(shape.layers);
  const auto q_width = static_cast<uint64_t>(shape.heads.heads * shape.heads.head_dim);
  const auto kv_width = static_cast<uint64_t>(shape.heads.kv_heads * shape.heads.head_dim);
  const auto columns = static_cast<uint64_t>(shape.intermediate_size);
  const uint64_t layer = hidden * (2 * q_width + 2 * kv_width + 3 * columns);
  const uint64_t head = hidden * static_cast<uint64_t>(shape.vocab_size);
  const uint64_t numbers = layers * layer + head + hidden;  // and a row of the embedding
  const uint64_t codes = numbers / 2 + numbers / 64 * 4;    // 4 bit, scale and offset a group of 64
  const uint64_t norms = (2 * layers + 1) * hidden * sizeof(float);
  EXPECT_EQ(profile({}, {64})[0].bytes.weights, codes + norms);
}

TEST_F(ProfileTest, a_step_is_two_of_our_operations_a_layer) {
  if (loaded_.engine.ops_name() != "cpu") {
    GTEST_SKIP() << "operations of " << loaded_.engine.ops_name();
  }
  const StepProfile step = profile({}, {64})[0];
  EXPECT_EQ(step.own_launches, 2 * loaded_.frontend.shape.layers + 2);
  EXPECT_EQ(step.nodes, step.own_launches);  // MLX has nothing to do
}

TEST_F(ProfileTest, fifty_steps_leave_no_more_memory_than_one) {
  const Prompt prompt = loaded_.prompt({}, "Count from 3 to 40.");
  nn::KVCache cache = loaded_.model().make_cache();
  run_chunks(loaded_.model(), prompt, {}, cache, 0, prompt.tokens(), prompt.tokens());
  for (size_t layer = 0; layer < cache.layers().size(); ++layer) {
    nn::reserve(cache.layer(static_cast<int>(layer)), 64);
  }
  mx::eval(cache.arrays());
  const int32_t id = 100;
  const auto step = [&] {
    const nn::Chunk chunk = next_chunk(prompt, cache.tokens(), id);
    mx::eval(loaded_.model().logits(loaded_.model().forward(chunk, cache)));
    mx::synchronize();
    return std::pair(mx::get_active_memory(), loaded_.engine.ops().own_bytes());
  };
  step();
  const auto first = step();
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(step(), first) << i;
  }
}

TEST_F(ProfileTest, a_prompt_longer_than_the_context_is_refused) {
  EXPECT_THROW(profile(picture_prompt(), {20}), Error);
}

TEST_F(ProfileTest, filler_goes_on_behind_the_prompt) {
  const Prompt prompt = picture_prompt();
  const Prompt filled = fill_prompt(prompt, filler_, prompt.tokens() + 3);
  EXPECT_EQ(filled.tokens(), prompt.tokens() + 3);
  for (const std::vector<int32_t>& axis : filled.positions.axes) {
    ASSERT_EQ(std::ssize(axis), filled.tokens());
    EXPECT_EQ(axis[static_cast<size_t>(prompt.tokens())], axis[axis.size() - 4] + 1);
    EXPECT_EQ(axis.back(), filled.tokens() - 1 + prompt.positions.delta);
  }
}

}  // namespace
}  // namespace whimbrel::test
