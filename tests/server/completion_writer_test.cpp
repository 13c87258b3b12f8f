#include "server/completion_writer.h"

#include <gtest/gtest.h>

#include <map>

#include "event_stream.h"

namespace whimbrel::wire {
namespace {

/// The tokens 0, 1, 2 are "a", and the two halves of "ä".
std::string bytes_of_token(int32_t id) {
  const std::vector<std::string> tokens = {"a", "\xC3", "\xA4"};
  return tokens.at(static_cast<size_t>(id));
}

CompletionInfo some_info() {
  return {.id = "cmpl-abc", .created = 1'700'000'000, .model = "m", .fingerprint = "fp"};
}

using PromptEvent = std::pair<int, Event>;

Json answer_of(const std::vector<PromptEvent>& events, const CompletionInfo& info = some_info()) {
  CompletionAnswer answer(info, bytes_of_token);
  for (const auto& [prompt, event] : events) {
    EXPECT_FALSE(answer.ended());
    answer.push(prompt, event);
  }
  EXPECT_TRUE(answer.ended());
  return answer.json();
}

std::string stream_of(
    const std::vector<PromptEvent>& events, const CompletionInfo& info = some_info()
) {
  CompletionStream stream(info, bytes_of_token);
  std::string bytes;
  for (const auto& [prompt, event] : events) {
    EXPECT_FALSE(stream.ended());
    bytes += stream.push(prompt, event);
  }
  EXPECT_TRUE(stream.ended());
  return bytes;
}

Json parsed(std::string_view text) {
  return Json::parse(text);
}

std::vector<PromptEvent> hello() {
  return {
      {0, Admitted{.prompt_tokens = 5, .cached_tokens = 2}},
      {0, AnswerToken{.id = 0, .text = "Hel"}},
      {0, AnswerToken{.id = 0, .text = ""}},
      {0, AnswerFinished{.text = "lo", .tokens = 2}},
      {0, RequestFinished{}}
  };
}

TEST(CompletionAnswer, has_the_shape_of_the_api) {
  Json json = answer_of(hello());
  EXPECT_EQ(json["timings"]["predicted_n"], 2);
  json.erase("timings");
  EXPECT_EQ(json, parsed(R"({
    "id":"cmpl-abc","object":"text_completion","created":1700000000,"model":"m",
    "system_fingerprint":"fp",
    "choices":[{"index":0,"text":"Hello","logprobs":null,"finish_reason":"stop"}],
    "usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,
      "prompt_tokens_details":{"cached_tokens":2,"image_tokens":0},
      "completion_tokens_details":{"reasoning_tokens":0}}})"));
}

TEST(CompletionAnswer, logprobs_have_an_offset_in_characters_for_each_token) {
  CompletionInfo info = some_info();
  info.logprobs = 2;
  info.echo = {"€: "};
  const auto token = [](int32_t id, std::string text) {
    return AnswerToken{
        .id = id,
        .text = std::move(text),
        .logprob = TokenLogprob{id, -0.5F},
        .top_logprobs = {{id, -0.5F}, {0, -1}}
    };
  };
  const Json choice = answer_of(
      {{0, token(0, "a")},
       {0, token(1, "")},
       {0, token(2, "ä")},
       {0, token(0, "a")},
       {0, AnswerFinished{.tokens = 4}},
       {0, RequestFinished{}}},
      info
  )["choices"][0];
  EXPECT_EQ(choice["text"], "€: aäa");
  EXPECT_EQ(choice["logprobs"]["tokens"], parsed(R"(["a","�","�","a"])"));
  EXPECT_EQ(choice["logprobs"]["token_logprobs"], parsed("[-0.5,-0.5,-0.5,-0.5]"));
  EXPECT_EQ(choice["logprobs"]["text_offset"], parsed("[3,4,5,5]"));
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][1], parsed(R"({"�":-0.5,"a":-1.0})"));
}

TEST(CompletionAnswer, without_best_tokens_there_are_no_top_logprobs) {
  CompletionInfo info = some_info();
  info.logprobs = 0;
  const Json logprobs = answer_of(hello(), info)["choices"][0]["logprobs"];
  EXPECT_TRUE(logprobs["top_logprobs"].is_null());
  EXPECT_EQ(logprobs["tokens"].size(), 2U);
}

std::vector<PromptEvent> two_prompts() {
  return {
      {1, Admitted{.prompt_tokens = 3}},
      {0, Admitted{.prompt_tokens = 2}},
      {1, AnswerToken{.choice = 1, .text = "d"}},
      {0, AnswerToken{.choice = 0, .text = "a"}},
      {1, AnswerFinished{.choice = 1, .tokens = 1}},
      {0, AnswerFinished{.choice = 0, .tokens = 1}},
      {0, AnswerFinished{.choice = 1, .reason = AnswerEnd::length, .text = "b"}},
      {0, RequestFinished{}},
      {1, AnswerFinished{.choice = 0, .text = "c"}},
      {1, RequestFinished{}}
  };
}

TEST(CompletionAnswer, choices_of_several_prompts_stand_one_behind_the_other) {
  CompletionInfo info = some_info();
  info.prompts = 2;
  info.choices = 2;
  info.echo = {"0:", "1:"};
  const Json json = answer_of(two_prompts(), info);
  ASSERT_EQ(json["choices"].size(), 4U);
  const std::vector<std::string> texts = {"0:a", "0:b", "1:c", "1:d"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(json["choices"][i]["index"], i);
    EXPECT_EQ(json["choices"][i]["text"], texts[i]);
  }
  EXPECT_EQ(json["choices"][1]["finish_reason"], "length");
  EXPECT_EQ(json["usage"]["prompt_tokens"], 5);
  EXPECT_EQ(json["usage"]["completion_tokens"], 2);
}

TEST(CompletionStream, has_the_chunks_of_the_api) {
  CompletionInfo info = some_info();
  info.include_usage = true;
  const std::vector<Json> chunks = chunks_of(stream_of(hello(), info));
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks[0], parsed(R"({"id":"cmpl-abc","object":"text_completion","created":1700000000,
    "model":"m","system_fingerprint":"fp","choices":[{"index":0,"text":"Hel","logprobs":null,
    "finish_reason":null}],"usage":null})"));
  EXPECT_EQ(chunks[1]["choices"][0], parsed(R"({"index":0,"text":"lo","logprobs":null,
    "finish_reason":"stop"})"));
  EXPECT_EQ(chunks[2]["choices"], Json::array());
  EXPECT_EQ(chunks[2]["usage"]["total_tokens"], 7);
  EXPECT_FALSE(chunks_of(stream_of(hello()))[1].contains("usage"));
}

TEST(CompletionStream, pieces_of_each_choice_add_up_to_the_answer) {
  CompletionInfo info = some_info();
  info.prompts = 2;
  info.choices = 2;
  info.echo = {"0:", "1:"};
  std::map<int, std::string> texts;
  for (const Json& chunk : chunks_of(stream_of(two_prompts(), info))) {
    texts[chunk["choices"][0]["index"].get<int>()] +=
        chunk["choices"][0]["text"].get<std::string>();
  }
  const Json answer = answer_of(two_prompts(), info);
  for (const Json& choice : answer["choices"]) {
    EXPECT_EQ(texts[choice["index"].get<int>()], choice["text"].get<std::string>());
  }
}

TEST(CompletionStream, log_probabilities_that_are_held_back_come_with_the_next_chunk) {
  CompletionInfo info = some_info();
  info.logprobs = 0;
  const std::vector<Json> chunks = chunks_of(stream_of(
      {{0, AnswerToken{.id = 1, .text = ""}},
       {0, AnswerToken{.id = 2, .text = "ä"}},
       {0, AnswerToken{.id = 0, .text = ""}},
       {0, AnswerFinished{.tokens = 3}},
       {0, RequestFinished{}}},
      info
  ));
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_EQ(chunks[0]["choices"][0]["logprobs"]["text_offset"], parsed("[0,1]"));
  EXPECT_EQ(chunks[1]["choices"][0]["logprobs"]["text_offset"], parsed("[1]"));
}

TEST(CompletionStream, a_failure_of_one_prompt_ends_all) {
  CompletionInfo info = some_info();
  info.prompts = 2;
  CompletionStream stream(info, bytes_of_token);
  stream.push(0, AnswerToken{.text = "a"});
  const std::vector<std::string> frames =
      frames_of(stream.push(1, RequestFailed{Fault::input, "[grammar] got"}));
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(parsed(frames[0])["error"]["type"], "invalid_request_error");
  EXPECT_TRUE(stream.ended());
  CompletionAnswer answer(info, bytes_of_token);
  answer.push(1, RequestFailed{Fault::input, "[grammar] got"});
  EXPECT_TRUE(answer.ended());
  EXPECT_TRUE(answer.failure());
}

}  // namespace
}  // namespace whimbrel::wire
