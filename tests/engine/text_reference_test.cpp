// Text families against stored answers of transformers in float32 for tiny random models: ids,
// logits at every prompt position fed whole and token by token, and the greedy answer. The models
// are random, so that sizes can be odd: heads that don't add up to hidden_size, a dense layer
// among layers of experts.

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include "base/file.h"
#include "engine/engine.h"
#include "engine/prepare.h"
#include "models/prompt_chunk.h"
#include "tests/support/reference.h"
#include "tests/support/source_dir.h"
#include "tests/support/tiny_model.h"
#include "tests/support/tolerance.h"

namespace whimbrel::test {
namespace {

namespace fs = std::filesystem;

/// Logits of these models lie within 30 of zero, so this is far above the tolerance.
constexpr float kDecidedHere = 0.5F;

struct TextCase {
  std::string family;
  std::string name;

  fs::path folder() const { return source_dir() / "tests/golden/reference-text" / family; }

  friend std::ostream& operator<<(std::ostream& out, const TextCase& text_case) {
    return out << text_case.family << "_" << text_case.name;
  }
};

std::vector<TextCase> text_cases() {
  std::vector<TextCase> cases;
  for (const char* family : {"qwen2", "qwen3", "qwen3_moe", "llama"}) {
    for (const char* name : {"short", "sentence", "symbols", "long"}) {
      cases.push_back({family, name});
    }
  }
  return cases;
}

std::vector<float> to_floats(const mx::array& array) {
  mx::array values = mx::contiguous(mx::astype(array, mx::float32));
  values.eval();
  return {values.data<float>(), values.data<float>() + values.size()};
}

class TextReferenceTest : public testing::TestWithParam<TextCase> {
 protected:
  TextReferenceTest()
      : tensors_(GetParam().folder() / (GetParam().name + ".safetensors")),
        frontend_(load_frontend(tiny_model(GetParam().family))),
        prompt_(prepare_raw(frontend_, text(), {}).prompt) {
    Checkpoint checkpoint(frontend_.config);
    std::unique_ptr<const ops::Ops> ops = choose_ops("reference", checkpoint.summary());
    engine_ = std::make_unique<Engine>(frontend_, checkpoint, std::move(ops), LoadEvents{});
  }

  static std::string text() {
    const Json about = Json::parse(read_file(GetParam().folder() / "about.json", Fault::input));
    return about.at("prompts").at(GetParam().name).get<std::string>();
  }

  /// Logits of the rows of one chunk, [rows, vocab_size].
  mx::array run(const nn::Chunk& chunk, nn::KVCache& cache) const {
    const mx::array logits = engine_->model().logits(engine_->model().forward(chunk, cache));
    return mx::astype(logits, mx::float32);
  }

  /// Logits at every prompt position, `width` tokens a forward.
  mx::array prompt_logits(int width, nn::KVCache& cache) const {
    std::vector<mx::array> rows;
    for (int first = 0; first < prompt_.tokens(); first += width) {
      const int end = std::min(first + width, prompt_.tokens());
      rows.push_back(run(prompt_chunk(prompt_, {}, first, end), cache));
      rows.back().eval();
    }
    return mx::concatenate(rows, 0);
  }

  void expect_close(const mx::array& logits) const {
    const std::vector<int32_t> top_ids = tensors_.ints("top_ids");
    const int top = static_cast<int>(tensors_.shape("top_ids")[1]);
    const mx::array index(top_ids.begin(), {prompt_.tokens(), top});
    const Difference at_top =
        difference(to_floats(mx::take_along_axis(logits, index, 1)), tensors_.floats("top_logits"));
    EXPECT_LE(at_top.relative(), kReferenceFloat32.logits) << "largest " << at_top.largest;
    if (tensors_.has("last_logits")) {
      const mx::array last = mx::take(logits, prompt_.tokens() - 1, 0);
      const Difference at_end = difference(to_floats(last), tensors_.floats("last_logits"));
      EXPECT_LE(at_end.relative(), kReferenceFloat32.logits) << "largest " << at_end.largest;
    }
  }

  SafetensorsFile tensors_;
  Frontend frontend_;
  Prompt prompt_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(TextReferenceTest, ids_are_equal) {
  EXPECT_EQ(prompt_.ids, tensors_.ints("input_ids"));
  EXPECT_EQ(prompt_.positions.delta, 0);
}

TEST_P(TextReferenceTest, logits_are_close_at_every_position) {
  nn::KVCache cache = engine_->model().make_cache();
  expect_close(prompt_logits(prompt_.tokens(), cache));
}

TEST_P(TextReferenceTest, logits_are_close_token_by_token) {
  nn::KVCache cache = engine_->model().make_cache();
  expect_close(prompt_logits(1, cache));
}

/// Feeds the reference's answer, so that one near tie doesn't end the comparison.
TEST_P(TextReferenceTest, decided_steps_of_the_answer_agree) {
  nn::KVCache cache = engine_->model().make_cache();
  const std::vector<int32_t> answer = tensors_.ints("greedy_ids");
  const std::vector<float> gap = tensors_.floats("gap");
  mx::array logits = prompt_logits(prompt_.tokens(), cache);
  int decided = 0;
  for (size_t step = 0; step < answer.size(); ++step) {
    const int best = mx::argmax(mx::take(logits, logits.shape(0) - 1, 0)).item<int>();
    if (gap[step] >= kDecidedHere) {
      ++decided;
      ASSERT_EQ(best, answer[step]) << "at step " << step;
    }
    logits = run({.ids = {&answer[step], 1}, .offset = cache.length()}, cache);
  }
  EXPECT_GE(decided, 8) << "nothing was compared";
}

INSTANTIATE_TEST_SUITE_P(
    cases,
    TextReferenceTest,
    testing::ValuesIn(text_cases()),
    [](const testing::TestParamInfo<TextCase>& param) {
      return testing::PrintToString(param.param);
    }
);

}  // namespace
}  // namespace whimbrel::test
