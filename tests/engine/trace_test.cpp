// Traces of a real model: chunks, depths in front of, inside and behind a picture, the decode path.

#include "generate/trace.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <cmath>

#include "base/error.h"
#include "generate/forward.h"
#include "tests/support/exact_ops.h"
#include "tests/support/loaded_model.h"
#include "tests/support/reference.h"

namespace whimbrel::test {
namespace {

class TraceTest : public testing::Test {
 protected:
  TraceTest() : loaded_(bundled_model("tiny-qwen2-5-vl-4bit"), exact_ops()) {}

  /// A picture between two texts.
  Prompt picture_prompt() const {
    return loaded_.prompt({"examples/shapes.png"}, "Describe this image. What is 53 minus 44?");
  }

  std::vector<TraceRow> rows(const Prompt& prompt, const TraceOptions& options) const {
    return trace(model(), prompt, options, {});
  }

  const Model& model() const { return loaded_.model(); }

  LoadedModel loaded_;
};

constexpr double kTraceLogits = 2e-3;

void expect_close(const std::vector<TraceRow>& found, const std::vector<TraceRow>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].pos, expected[i].pos);
    EXPECT_EQ(found[i].id, expected[i].id);
    EXPECT_EQ(found[i].target, expected[i].target);
    EXPECT_NEAR(found[i].nll, expected[i].nll, kTraceLogits);
    for (size_t k = 0; k < expected[i].top_logits.size(); ++k) {
      EXPECT_NEAR(found[i].top_logits[k], expected[i].top_logits[k], kTraceLogits) << found[i].pos;
    }
  }
}

TEST_F(TraceTest, rows_are_the_whole_prompts_logits) {
  const Prompt prompt = picture_prompt();
  const int positions = prompt.tokens() - 1;
  nn::KVCache cache = model().make_cache();
  const std::vector<nn::Features> features = encode_media(model(), prompt, 1, [] {});
  const std::vector<float> logits = evaluated_logits(
      model(), model().forward(prompt_chunk(prompt, features, 0, prompt.tokens()), cache)
  );
  const auto vocab_size = static_cast<size_t>(loaded_.frontend.shape.vocab_size);
  std::vector<TraceRow> expected;
  for (int pos = 0; pos < positions; ++pos) {
    const auto row = std::span(logits).subspan(static_cast<size_t>(pos) * vocab_size, vocab_size);
    expected.push_back(trace_row(prompt, pos, row, 8));
  }
  for (const int width : {1, 7, positions}) {
    expect_close(rows(prompt, {.positions = positions, .width = width}), expected);
  }
}

TEST_F(TraceTest, depth_may_lie_anywhere) {
  const Prompt prompt = picture_prompt();
  const MediaSpan& picture = prompt.media[0];
  const int last = prompt.tokens() - 1;
  const std::vector<TraceRow> whole = rows(prompt, {.positions = last});
  for (const int depth :
       {picture.runs[0].first - 1,
        picture.runs[0].first,
        picture.runs[0].first + picture.runs[0].tokens / 2,
        picture.runs[0].first + picture.runs[0].tokens}) {
    for (const int width : {1, 4}) {
      const std::vector<TraceRow> found = rows(
          prompt, {.depth = depth, .positions = last - depth, .width = width, .prefill_chunk = 16}
      );
      expect_close(found, {whole.begin() + depth, whole.end()});
    }
  }
}

TEST_F(TraceTest, media_behind_the_trace_are_not_needed) {
  Prompt prompt = picture_prompt();
  const int positions = prompt.media[0].first_token();
  prompt.media[0].patches = {};  // a tower that is run on nothing would throw
  EXPECT_EQ(std::ssize(rows(prompt, {.positions = positions})), positions);
}

TEST_F(TraceTest, width_one_behind_media_is_the_decode_step) {
  const Prompt prompt = picture_prompt();
  const int depth = prompt.media[0].end_token() + 3;
  const std::vector<nn::Features> features = encode_media(model(), prompt, 1, [] {});
  nn::KVCache cache = model().make_cache();
  model().forward(prompt_chunk(prompt, features, 0, depth), cache);
  mx::eval(cache.arrays());
  const nn::Chunk traced = prompt_chunk(prompt, features, depth, depth + 1);
  const nn::Chunk decode =
      next_chunk(prompt, cache.tokens(), prompt.ids[static_cast<size_t>(depth)]);
  EXPECT_EQ(traced.ids[0], decode.ids[0]);
  EXPECT_EQ(traced.ids.size(), decode.ids.size());
  EXPECT_EQ(traced.offset, decode.offset);
  EXPECT_FALSE(traced.axes);
  EXPECT_TRUE(traced.media.empty());
}

TEST_F(TraceTest, says_how_far_it_is_and_can_be_cancelled) {
  const Prompt prompt = picture_prompt();
  std::vector<int> done;
  const TraceEvents events{
      .on_tokens =
          [&done](int tokens, int total) {
            EXPECT_EQ(total, 40);
            done.push_back(tokens);
          },
      .cancelled = [&done] { return done.size() == 3; }
  };
  const TraceOptions options{.depth = 20, .positions = 20, .width = 8, .prefill_chunk = 16};
  EXPECT_THROW(trace(model(), prompt, options, events), Error);
  EXPECT_EQ(done, (std::vector<int>{16, 20, 28}));
}

TEST_F(TraceTest, plain_text_has_no_special_tokens) {
  const Prompt prompt = prepare_text(loaded_.frontend, "<|image_pad|> and <|im_end|>");
  EXPECT_EQ(std::ranges::count(prompt.ids, loaded_.frontend.media->image_token_id), 0);
  EXPECT_EQ(std::ranges::count(prompt.ids, loaded_.frontend.stop_ids[0]), 0);
  EXPECT_TRUE(prompt.media.empty());
  EXPECT_EQ(prompt.positions.axes[0].size(), prompt.ids.size());
  EXPECT_THROW(prepare_text(loaded_.frontend, ""), Error);
  EXPECT_THROW(prepare_text(loaded_.frontend, "\xff"), Error);
}

}  // namespace
}  // namespace whimbrel::test
