// The decode loop on a real model: chunks, stops, limits, cancelling, streams.

#include "generate/generate.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/loaded_model.h"
#include "tests/support/reference.h"

namespace whimbrel::test {
namespace {

class GenerateTest : public testing::Test {
 protected:
  GenerateTest() : loaded_(bundled_model("tiny-qwen2-5-vl-4bit")) {}

  Prompt picture_prompt() const {
    return loaded_.prompt({"examples/shapes.png"}, "Describe this image.");
  }

  Generation answer(
      const Prompt& prompt, GenerateOptions options = {}, const GenerateEvents& events = {}
  ) const {
    options.sampling.temperature = 0;
    options.stop_ids = loaded_.frontend.stop_ids;
    options.max_tokens = options.max_tokens == 0 ? 40 : options.max_tokens;
    return generate(loaded_.model(), loaded_.frontend.tokenizer, prompt, options, events);
  }

  LoadedModel loaded_;
};

TEST_F(GenerateTest, requests_leave_nothing_behind) {
  const Prompt text = loaded_.prompt({}, "What is 53 minus 44?");
  const Prompt picture = picture_prompt();
  const Generation fresh = answer(text);
  const Generation described = answer(picture);
  EXPECT_EQ(answer(text).ids, fresh.ids);
  EXPECT_EQ(answer(picture).ids, described.ids);
  EXPECT_NE(fresh.ids, described.ids);
}

TEST_F(GenerateTest, streamed_pieces_are_the_text) {
  std::string streamed;
  int pieces = 0;
  const Generation found = answer(
      picture_prompt(),
      {},
      {.on_text =
           [&](std::string_view text) {
             streamed += text;
             ++pieces;
           },
       .on_prefill = {},
       .cancelled = {}}
  );
  EXPECT_EQ(streamed, found.text);
  EXPECT_GT(pieces, 5);
  EXPECT_EQ(found.finish_reason, FinishReason::stop);
}

TEST_F(GenerateTest, a_limit_ends_with_length) {
  const Prompt prompt = picture_prompt();
  const Generation found = answer(prompt, {.max_tokens = 3});
  EXPECT_EQ(found.ids.size(), 3U);
  EXPECT_EQ(found.finish_reason, FinishReason::length);
  EXPECT_EQ(found.timings.per_token.size(), 2U);
}

TEST_F(GenerateTest, a_stop_text_ends_before_itself) {
  const Prompt prompt = picture_prompt();
  const Generation found = answer(prompt, {.stops = {"cross at"}});
  EXPECT_EQ(found.text, "A large orange ");
  EXPECT_EQ(found.finish_reason, FinishReason::stop);
}

TEST_F(GenerateTest, prefill_is_reported_and_can_be_cancelled) {
  const Prompt prompt = picture_prompt();
  std::vector<int> done;
  const auto note = [&done](int tokens, int /*total*/) { done.push_back(tokens); };
  const GenerateEvents events{.on_text = {}, .on_prefill = note, .cancelled = [&done] {
                                return done.size() == 2;
                              }};
  try {
    answer(prompt, {.prefill_chunk = 30}, events);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::interrupted);
  }
  EXPECT_EQ(done, (std::vector<int>{30, 60}));
}

}  // namespace
}  // namespace whimbrel::test
