// Our whole path against the stored answers of transformers: ids, grids, positions, pixels, tower
// features, logits at every prompt position, and the greedy answer.

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "base/file.h"
#include "engine/engine.h"
#include "engine/messages.h"
#include "engine/prepare.h"
#include "models/prompt_chunk.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/device.h"
#include "tests/support/exact_ops.h"
#include "tests/support/reference.h"
#include "tests/support/tolerance.h"

namespace whimbrel::test {
namespace {

std::vector<std::string> known_model_types() {
  std::vector<std::string> types;
  for (const Family* family : families()) {
    types.emplace_back(family->model_type);
  }
  return types;
}

std::vector<float> to_floats(const mx::array& array) {
  mx::array values = mx::contiguous(mx::astype(array, mx::float32));
  values.eval();
  return {values.data<float>(), values.data<float>() + values.size()};
}

MediaInput read_media(const std::string& path, MediaKind kind) {
  return {.source = path, .bytes = read_file(path, Fault::input), .kind = kind};
}

class ReferenceTest : public testing::TestWithParam<ReferenceCase> {
 protected:
  ReferenceTest()
      : tensors_(GetParam().tensors),
        json_(Json::parse(read_file(GetParam().json, Fault::input))),
        frontend_(load_frontend(GetParam().checkpoint)),
        prompt_(prepare()) {}

  Prompt prepare() const {
    const ChatTemplate chat_template =
        ChatTemplate::load(GetParam().checkpoint, frontend_.tokenizer);
    const ChatInput input = read_messages(openai_messages(GetParam()), read_media);
    return prepare_chat(frontend_, chat_template, input).prompt;
  }

  void load_model() { load_model(choose_ops("reference", Checkpoint(frontend_.config).summary())); }

  void load_model(std::unique_ptr<const ops::Ops> ops) {
    Checkpoint checkpoint(frontend_.config);
    engine_ = std::make_unique<Engine>(frontend_, checkpoint, std::move(ops), LoadEvents{});
    features_.clear();
    for (const MediaSpan& span : prompt_.media) {
      features_.push_back(engine_->model().encode(span.patches));
    }
  }

  /// Logits of the rows of one chunk, [rows, vocab_size].
  mx::array run(const nn::Chunk& chunk, nn::KVCache& cache) const {
    const mx::array logits = engine_->model().logits(engine_->model().forward(chunk, cache));
    return mx::astype(logits, mx::float32);
  }

  bool has_media(MediaKind kind) const {
    return std::ranges::count(prompt_.media, kind, &MediaSpan::kind) != 0;
  }

  /// Rows of all media of a kind, one medium behind the other, against a stored tensor.
  void expect_close(
      const std::string& name,
      MediaKind kind,
      const std::function<mx::array(const nn::Features&)>& rows_of
  ) {
    std::vector<mx::array> rows;
    for (size_t i = 0; i < features_.size(); ++i) {
      if (prompt_.media[i].kind == kind) {
        rows.push_back(rows_of(features_[i]));
      }
    }
    const Difference found = difference(to_floats(mx::concatenate(rows, 0)), tensors_.floats(name));
    RecordProperty(name, std::to_string(found.relative()));
    EXPECT_LE(found.relative(), kReferenceFloat32.features) << name;
  }

  /// Logits of the whole prompt, [tokens, vocab_size]; its rows stand in the cache then.
  mx::array prompt_logits() {
    cache_.emplace(engine_->model().make_cache());
    mx::array logits = run(prompt_chunk(prompt_, features_, 0, prompt_.tokens()), *cache_);
    logits.eval();
    return logits;
  }

  /// Fed token by token, so that one near tie doesn't end the comparison.
  void expect_decided_steps(mx::array logits) {
    const std::vector<int32_t> answer = tensors_.ints("greedy_ids");
    const std::vector<float> gap = tensors_.floats("gap");
    for (size_t step = 0; step < answer.size(); ++step) {
      const int best = mx::argmax(mx::take(logits, logits.shape(0) - 1, 0)).item<int>();
      if (gap[step] >= kDecidedGap) {
        ASSERT_EQ(best, answer[step]) << "at step " << step;
      }
      logits = run(next_chunk(prompt_, cache_->length(), answer[step]), *cache_);
    }
  }

  /// Every position of the prompt, and then every step of the answer, one row at a time.
  void expect_kernels_alike(const std::vector<ops::cpu::Isa>& isas) {
    if (ops::backend_name() != "cpu") {
      GTEST_SKIP() << "on a GPU";
    }
    for (const ops::cpu::Isa isa : isas) {
      SCOPED_TRACE(ops::cpu::isa_name(isa));
      load_model(ops::cpu::make_cpu_ops(isa, ops::threads()));
      const mx::array logits = prompt_logits();
      const mx::array last = mx::take(logits, prompt_.tokens() - 1, 0);
      const Difference at_end = difference(to_floats(last), tensors_.floats("last_logits"));
      EXPECT_LE(at_end.relative(), kKernelLogits) << "largest " << at_end.largest;
      RecordProperty(std::string(ops::cpu::isa_name(isa)), std::to_string(at_end.relative()));
      expect_decided_steps(logits);
      const auto allowed = json_.at("bf16_flips_decided").get<size_t>();
      const std::vector<int> wrong = decided_disagreements(logits);
      if (wrong.size() > allowed) {
        EXPECT_LE(wrong.size(), allowed + 1);
        EXPECT_LE(std::ranges::count_if(wrong, goes_to_exact_experts()), allowed);
      }
    }
  }

  /// What a router says of each token, layer by layer; nothing of a dense model.
  std::vector<std::vector<float>> router_logits() const {
    std::vector<std::vector<float>> layers;
    nn::KVCache cache = engine_->model().make_cache();
    const auto keep = [&layers](std::string_view stage, const mx::array& output) {
      if (stage.ends_with(".mlp.gate")) {
        layers.push_back(to_floats(output));
      }
    };
    engine_->model().forward(prompt_chunk(prompt_, features_, 0, prompt_.tokens()), cache, keep);
    return layers;
  }

  /// Whether a token is one that the loaded model sends to the experts that exact arithmetic sends
  /// it to. Where that is nearly a tie, rounding may turn the choice, and either is right: then
  /// what follows from it is not compared. Loads the exact model.
  std::function<bool(int)> goes_to_exact_experts() {
    std::vector<std::vector<float>> found = router_logits();
    load_model(ops::cpu::make_cpu_ops(widest_exact_isa(), ops::threads()));
    std::vector<std::vector<float>> exact = router_logits();
    return [this, found = std::move(found), exact = std::move(exact)](int token) {
      for (size_t layer = 0; layer < exact.size(); ++layer) {
        if (is_turned(exact[layer], found[layer], token)) {
          return false;
        }
      }
      return true;
    };
  }

  bool is_turned(
      const std::vector<float>& exact, const std::vector<float>& found, int token
  ) const {
    constexpr float kNearTie = 0.01F;  // of logits of a few units, rounded to 8 bits on the way
    const size_t experts = exact.size() / prompt_.ids.size();
    const auto chosen = static_cast<size_t>(engine_->model().config().moe->num_experts_per_tok);
    const auto ranked = [&](const std::vector<float>& logits) {
      const auto first =
          logits.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(token) * experts);
      std::vector<std::pair<float, size_t>> best;
      for (size_t i = 0; i < experts; ++i) {
        best.emplace_back(-first[static_cast<ptrdiff_t>(i)], i);
      }
      std::ranges::sort(best);
      return best;
    };
    const auto set_of = [chosen](const std::vector<std::pair<float, size_t>>& best) {
      std::set<size_t> set;
      for (size_t i = 0; i < chosen; ++i) {
        set.insert(best[i].second);
      }
      return set;
    };
    const auto of_exact = ranked(exact);
    const float margin = of_exact[chosen].first - of_exact[chosen - 1].first;
    return margin < kNearTie && set_of(of_exact) != set_of(ranked(found));
  }

  /// Decided prompt positions at which another token than the reference's is best.
  std::vector<int> decided_disagreements(const mx::array& logits) const {
    mx::array best = mx::astype(mx::argmax(logits, -1), mx::int32);
    best.eval();
    const std::vector<int32_t> top_ids = tensors_.ints("top_ids");
    const std::vector<float> top_logits = tensors_.floats("top_logits");
    const auto top = static_cast<size_t>(tensors_.shape("top_ids")[1]);
    int decided = 0;
    std::vector<int> disagreements;
    for (size_t i = 0; i < prompt_.ids.size(); ++i) {
      if (top_logits[i * top] - top_logits[i * top + 1] >= kDecidedGap) {
        ++decided;
        if (best.data<int32_t>()[i] != top_ids[i * top]) {
          disagreements.push_back(static_cast<int>(i));
        }
      }
    }
    EXPECT_EQ(decided, json_.at("decided").get<int>());
    return disagreements;
  }

  SafetensorsFile tensors_;
  Json json_;
  Frontend frontend_;
  Prompt prompt_;
  std::unique_ptr<Engine> engine_;
  std::vector<nn::Features> features_;
  std::optional<nn::KVCache> cache_;
};

TEST_P(ReferenceTest, prompt_is_equal) {
  EXPECT_EQ(prompt_.ids, tensors_.ints("input_ids"));
  EXPECT_EQ(prompt_.positions.delta, json_.at("rope_delta").get<int>());
  std::vector<int32_t> positions;
  for (const std::vector<int32_t>& axis : prompt_.positions.axes) {
    positions.insert(positions.end(), axis.begin(), axis.end());
  }
  EXPECT_EQ(positions, tensors_.ints("position_ids"));
  std::vector<int32_t> grids;
  for (const MediaKind kind : {MediaKind::image, MediaKind::video}) {  // the reference's order
    for (const MediaSpan& span : prompt_.media) {
      if (span.kind == kind) {
        grids.insert(grids.end(), span.patches.grid_thw.begin(), span.patches.grid_thw.end());
      }
    }
  }
  EXPECT_EQ(grids, tensors_.has("grid_thw") ? tensors_.ints("grid_thw") : std::vector<int32_t>());
}

TEST_P(ReferenceTest, features_are_close) {
  load_model();
  for (const auto& [kind, name] :
       {std::pair{MediaKind::image, "features"}, std::pair{MediaKind::video, "video_features"}}) {
    ASSERT_EQ(tensors_.has(name), has_media(kind)) << name;
    if (has_media(kind)) {
      expect_close(name, kind, [](const nn::Features& of_medium) { return of_medium.rows; });
    }
  }
  for (size_t i = 0; tensors_.has(fmt::format("deepstack_{}", i)); ++i) {
    const auto layer = [i](const nn::Features& of_medium) { return of_medium.deepstack.at(i); };
    expect_close(fmt::format("deepstack_{}", i), MediaKind::image, layer);
  }
}

TEST_P(ReferenceTest, logits_are_close_and_decided_steps_agree) {
  load_model();
  const mx::array logits = prompt_logits();
  EXPECT_EQ(decided_disagreements(logits), std::vector<int>{});
  const std::vector<int32_t> top_ids = tensors_.ints("top_ids");
  const std::vector<float> expected = tensors_.floats("top_logits");
  const int top = static_cast<int>(tensors_.shape("top_ids")[1]);
  const mx::array index(top_ids.begin(), {prompt_.tokens(), top});
  const Difference at_top = difference(to_floats(mx::take_along_axis(logits, index, 1)), expected);
  EXPECT_LE(at_top.relative(), kReferenceFloat32.logits) << "largest " << at_top.largest;
  const mx::array last = mx::take(logits, prompt_.tokens() - 1, 0);
  const Difference at_end = difference(to_floats(last), tensors_.floats("last_logits"));
  EXPECT_LE(at_end.relative(), kReferenceFloat32.logits) << "largest " << at_end.largest;
  RecordProperty("relative", std::to_string(std::max(at_top.relative(), at_end.relative())));
  expect_decided_steps(logits);
}

/// Residual stream and what operations put out in bfloat16, sums in float32. The reference itself
/// counts the positions that its own bfloat16 run decides otherwise: one, of an expert's choice.
TEST_P(ReferenceTest, decided_prompt_positions_agree_in_bfloat16) {
  load_model(ops::make_reference_ops(mx::bfloat16, ops::Arithmetic::float32));
  const auto allowed = json_.at("bf16_flips_decided").get<size_t>();
  EXPECT_LE(decided_disagreements(prompt_logits()).size(), allowed);
}

TEST_P(ReferenceTest, our_kernels_decide_alike) {
  expect_kernels_alike(main_isas());
}

using SlowReferenceTest = ReferenceTest;

TEST_P(SlowReferenceTest, our_kernels_decide_alike_on_every_instruction_set) {
  expect_kernels_alike(ops::cpu::available_isas());
}

/// By the operations that users get.
TEST_P(ReferenceTest, answer_is_equal_up_to_the_first_undecided_step) {
  load_model(choose_ops("", Checkpoint(frontend_.config).summary()));
  const std::vector<float> gap = tensors_.floats("gap");
  std::vector<int32_t> expected = tensors_.ints("greedy_ids");
  const auto decided =
      std::ranges::find_if(gap, [](float g) { return g < kDecidedGap; }) - gap.begin();
  expected.resize(static_cast<size_t>(decided));
  const bool whole = decided == std::ssize(gap);
  GenerateOptions options{
      .max_tokens = static_cast<int>(gap.size()), .stop_ids = frontend_.stop_ids
  };
  options.sampling.temperature = 0;
  const Generation found =
      generate(engine_->model(), frontend_.tokenizer, prompt_, options, GenerateEvents{});
  if (whole && std::ranges::count(frontend_.stop_ids, expected.back()) != 0) {
    expected.pop_back();
    EXPECT_EQ(found.text, json_.at("text").get<std::string>());
    EXPECT_EQ(found.ids, expected);
  }
  ASSERT_GE(found.ids.size(), expected.size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found.ids.begin()));
}

INSTANTIATE_TEST_SUITE_P(
    cases,
    ReferenceTest,
    testing::ValuesIn(reference_cases(known_model_types())),
    [](const testing::TestParamInfo<ReferenceCase>& param) { return param.param.test_name(); }
);
INSTANTIATE_TEST_SUITE_P(
    Slow,
    SlowReferenceTest,
    testing::ValuesIn(reference_cases(known_model_types())),
    [](const testing::TestParamInfo<ReferenceCase>& param) { return param.param.test_name(); }
);

}  // namespace
}  // namespace whimbrel::test
