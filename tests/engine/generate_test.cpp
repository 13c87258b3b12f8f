// The decode loop on a real model: chunks, stops, limits, cancelling, streams.

#include "generate/generate.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include "base/error.h"
#include "base/file.h"
#include "engine/engine.h"
#include "engine/messages.h"
#include "engine/prepare.h"
#include "models/prompt_chunk.h"
#include "ops/graph.h"
#include "tests/support/reference.h"
#include "tests/support/source_dir.h"

namespace whimbrel::test {
namespace {

class GenerateTest : public testing::Test {
 protected:
  GenerateTest()
      : frontend_(load_frontend(bundled_model("tiny-qwen2-5-vl-4bit"))),
        checkpoint_(frontend_.config),
        engine_(frontend_, checkpoint_, choose_ops("", checkpoint_.summary()), LoadEvents{}) {}

  Prompt prompt_of(const std::string& picture, const std::string& text) const {
    const std::filesystem::path file = source_dir() / picture;
    ChatInput input;
    Json content = Json::array();
    if (!picture.empty()) {
      content.push_back(Json::object({{"type", "image"}}));
      input.media = {{picture, read_file(file, Fault::input)}};
    }
    content.push_back(Json::object({{"type", "text"}, {"text", text}}));
    input.chat.messages.push_back(Json::object({{"role", "user"}, {"content", content}}));
    const ChatTemplate chat_template =
        ChatTemplate::load(frontend_.config.folder, frontend_.tokenizer);
    return prepare_chat(frontend_, chat_template, input).prompt;
  }

  Generation answer(
      const Prompt& prompt, GenerateOptions options = {}, const GenerateEvents& events = {}
  ) const {
    options.sampling.temperature = 0;
    options.stop_ids = frontend_.stop_ids;
    options.max_tokens = options.max_tokens == 0 ? 40 : options.max_tokens;
    return generate(engine_.model(), frontend_.tokenizer, prompt, options, events);
  }

  /// Logits of all prompt positions when the prompt runs in chunks of `size` tokens.
  mx::array chunked_logits(const Prompt& prompt, int size) const {
    std::vector<nn::Features> features;
    for (const MediaSpan& span : prompt.media) {
      features.push_back(engine_.model().encode(span.patches));
    }
    nn::KVCache cache = engine_.model().make_cache();
    std::vector<mx::array> parts;
    for (int first = 0; first < prompt.tokens(); first += size) {
      const int end = std::min(first + size, prompt.tokens());
      parts.push_back(engine_.model().logits(
          engine_.model().forward(prompt_chunk(prompt, features, first, end), cache)
      ));
    }
    return mx::concatenate(parts, 0);
  }

  /// Operations of one decode step behind a prompt.
  std::multiset<std::string> decode_operations(const Prompt& prompt) const {
    std::vector<nn::Features> features;
    for (const MediaSpan& span : prompt.media) {
      features.push_back(engine_.model().encode(span.patches));
    }
    nn::KVCache cache = engine_.model().make_cache();
    engine_.model().forward(prompt_chunk(prompt, features, 0, prompt.tokens()), cache);
    mx::eval(cache.arrays());
    const int32_t id = 5;
    const nn::Chunk next = next_chunk(prompt, cache.length(), id);
    return ops::operations({engine_.model().logits(engine_.model().forward(next, cache))});
  }

  Frontend frontend_;
  Checkpoint checkpoint_;
  Engine engine_;
};

TEST_F(GenerateTest, any_chunk_size_gives_the_same_logits) {
  const Prompt prompt = prompt_of("examples/shapes.png", "Describe this image.");
  const mx::array whole = chunked_logits(prompt, prompt.tokens());
  for (const int size : {1, 7, 64}) {
    const mx::array chunked = chunked_logits(prompt, size);
    const float largest = mx::max(mx::abs(mx::subtract(whole, chunked))).item<float>();
    EXPECT_LT(largest, 2e-3F) << "chunks of " << size;
  }
}

TEST_F(GenerateTest, a_decode_step_behind_a_picture_is_one_behind_text) {
  EXPECT_EQ(
      decode_operations(prompt_of("examples/shapes.png", "Describe this image.")),
      decode_operations(prompt_of("", "What is seven plus eight?"))
  );
}

TEST_F(GenerateTest, requests_leave_nothing_behind) {
  const Prompt text = prompt_of("", "What is 53 minus 44?");
  const Prompt picture = prompt_of("examples/shapes.png", "Describe this image.");
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
      prompt_of("examples/shapes.png", "Describe this image."),
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
  const Prompt prompt = prompt_of("examples/shapes.png", "Describe this image.");
  const Generation found = answer(prompt, {.max_tokens = 3});
  EXPECT_EQ(found.ids.size(), 3U);
  EXPECT_EQ(found.finish_reason, FinishReason::length);
  EXPECT_EQ(found.timings.per_token.size(), 2U);
}

TEST_F(GenerateTest, a_stop_text_ends_before_itself) {
  const Prompt prompt = prompt_of("examples/shapes.png", "Describe this image.");
  const Generation found = answer(prompt, {.stops = {"cross at"}});
  EXPECT_EQ(found.text, "A large orange ");
  EXPECT_EQ(found.finish_reason, FinishReason::stop);
}

TEST_F(GenerateTest, prefill_is_reported_and_can_be_cancelled) {
  const Prompt prompt = prompt_of("examples/shapes.png", "Describe this image.");
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
