#include "server/chat_writer.h"

#include <gtest/gtest.h>

#include <map>

#include "event_stream.h"

namespace whimbrel::wire {
namespace {

constexpr std::string_view kCall =
    "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>";

std::string bytes_of_token(int32_t id) {
  return id == 7 ? "\xE2\x82" : "t" + std::to_string(id);
}

ChatAnswerInfo some_info() {
  return {
      .id = "chatcmpl-abc",
      .created = 1'700'000'000,
      .model = "m",
      .fingerprint = "fp",
      .form = {.tool_format = ToolFormat::hermes, .tools = {{.name = "add"}}}
  };
}

/// The events of a request with one answer in these pieces; the last comes with its end.
std::vector<Event> events_of(
    const std::vector<std::string>& pieces, AnswerEnd end = AnswerEnd::stop
) {
  std::vector<Event> events = {Admitted{.prompt_tokens = 9, .cached_tokens = 4}};
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    events.emplace_back(AnswerToken{.id = static_cast<int32_t>(i), .text = pieces[i]});
  }
  events.emplace_back(
      AnswerFinished{
          .reason = end, .text = pieces.back(), .tokens = static_cast<int>(pieces.size()) - 1
      }
  );
  events.emplace_back(RequestFinished{{.queue = 1, .tower = 2, .prefill = 8, .decode = 20}});
  return events;
}

Json answer_of(const std::vector<Event>& events, ChatAnswerInfo info = some_info()) {
  ChatAnswer answer(std::move(info), bytes_of_token);
  for (const Event& event : events) {
    EXPECT_FALSE(answer.ended());
    answer.push(event);
  }
  EXPECT_TRUE(answer.ended());
  EXPECT_FALSE(answer.failure());
  return answer.json();
}

std::string stream_of(const std::vector<Event>& events, ChatAnswerInfo info = some_info()) {
  ChatStream stream(std::move(info), bytes_of_token);
  std::string bytes;
  for (const Event& event : events) {
    EXPECT_FALSE(stream.ended());
    bytes += stream.push(event);
  }
  EXPECT_TRUE(stream.ended());
  return bytes;
}

Json parsed(std::string_view text) {
  return Json::parse(text);
}

TEST(ChatAnswer, has_the_shape_of_the_api) {
  const Json json = answer_of(events_of({"Hel", "lo", ""}));
  EXPECT_EQ(
      json,
      parsed(
          R"({
    "id":"chatcmpl-abc","object":"chat.completion","created":1700000000,"model":"m",
    "system_fingerprint":"fp",
    "choices":[{"index":0,"message":{"role":"assistant","content":"Hello","refusal":null},
      "logprobs":null,"finish_reason":"stop"}],
    "usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,
      "prompt_tokens_details":{"cached_tokens":4,"image_tokens":0},
      "completion_tokens_details":{"reasoning_tokens":0}},
    "timings":{"prompt_n":5,"cache_n":4,"prompt_ms":10.0,"prompt_per_token_ms":2.0,
      "prompt_per_second":500.0,"predicted_n":2,"predicted_ms":20.0,"predicted_per_token_ms":20.0,
      "predicted_per_second":50.0,"draft_n":0,"draft_n_accepted":0,"queue_ms":1.0,"tower_ms":2.0}})"
      )
  );
}

TEST(ChatAnswer, content_is_null_only_beside_calls) {
  const Json none = answer_of(events_of({""}))["choices"][0]["message"];
  EXPECT_EQ(none["content"], "");
  EXPECT_FALSE(none.contains("tool_calls"));
  const Json choice = answer_of(events_of({std::string(kCall), ""}))["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_TRUE(choice["message"]["content"].is_null());
  EXPECT_EQ(choice["message"]["tool_calls"], parsed(R"([{"id":"call_abc_0_0","type":"function",
    "function":{"name":"add","arguments":"{\"a\": 1}"}}])"));
  const Json both = answer_of(events_of({"Well. ", std::string(kCall), ""}))["choices"][0];
  EXPECT_EQ(both["message"]["content"], "Well.");
  EXPECT_EQ(both["message"]["tool_calls"].size(), 1U);
}

TEST(ChatAnswer, reasoning_stands_beside_the_content_and_is_counted) {
  ChatAnswerInfo info = some_info();
  info.form.reasoning_opened = true;
  const Json json = answer_of(events_of({"Let me", " see.", "\n</think>\n\n", "42", ""}), info);
  const Json& message = json["choices"][0]["message"];
  EXPECT_EQ(message["content"], "42");
  EXPECT_EQ(message["reasoning_content"], "Let me see.");
  EXPECT_EQ(message["reasoning"], "Let me see.");
  EXPECT_EQ(json["usage"]["completion_tokens_details"]["reasoning_tokens"], 3);
}

TEST(ChatAnswer, a_call_that_breaks_is_content_as_it_was_written) {
  const std::string broken = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": ";
  const Json choice = answer_of(events_of({broken, ""}, AnswerEnd::length))["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["message"]["content"], broken);
  EXPECT_FALSE(choice["message"].contains("tool_calls"));
  EXPECT_EQ(answer_of(events_of({broken, ""}))["choices"][0]["finish_reason"], "stop");
}

TEST(ChatAnswer, an_answer_that_was_cut_behind_a_call_ended_by_length) {
  const Json choice =
      answer_of(events_of({std::string(kCall), ""}, AnswerEnd::length))["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["message"]["tool_calls"].size(), 1U);
}

TEST(ChatAnswer, without_tools_a_call_is_text) {
  ChatAnswerInfo info = some_info();
  info.form.tools.clear();
  const Json choice = answer_of(events_of({std::string(kCall), ""}), info)["choices"][0];
  EXPECT_EQ(choice["message"]["content"], kCall);
  EXPECT_EQ(choice["finish_reason"], "stop");
}

TEST(ChatAnswer, logprobs_tell_each_tokens_text_and_bytes) {
  ChatAnswerInfo info = some_info();
  info.logprobs = true;
  const float never = -std::numeric_limits<float>::infinity();
  const Json json = answer_of(
      {AnswerToken{
           .id = 7,
           .text = "",
           .logprob = TokenLogprob{7, -0.5F},
           .top_logprobs = {{7, -0.5F}, {1, never}}
       },
       AnswerToken{.id = 2, .text = "a", .logprob = TokenLogprob{2, -0.25F}},
       AnswerFinished{.tokens = 2},
       RequestFinished{}},
      info
  );
  EXPECT_EQ(json["choices"][0]["logprobs"], parsed(R"({"content":[
    {"token":"�","bytes":[226,130],"logprob":-0.5,"top_logprobs":[
      {"token":"�","bytes":[226,130],"logprob":-0.5},
      {"token":"t1","bytes":[116,49],"logprob":-9999.0}]},
    {"token":"t2","bytes":[116,50],"logprob":-0.25,"top_logprobs":[]}],"refusal":null})"));
}

TEST(ChatAnswer, details_come_where_they_were_asked_for) {
  ChatAnswerInfo info = some_info();
  info.whimbrel = {{"media", Json::array()}};
  const std::vector<Event> events = {
      Admitted{.prompt_tokens = 9, .not_cached = "another picture"},
      AnswerFinished{},
      RequestFinished{}
  };
  const Json expected = parsed(R"({"media":[],"not_cached":"another picture","boxes":[]})");
  EXPECT_EQ(answer_of(events, info)["whimbrel"], expected);
  EXPECT_EQ(chunks_of(stream_of(events, info)).back()["whimbrel"], expected);
  EXPECT_FALSE(answer_of(events).contains("whimbrel"));
}

/// One of a picture that is looked at in half of its sides.
ChatAnswerInfo info_with_details() {
  ChatAnswerInfo info = some_info();
  info.whimbrel = {{"media", Json::array()}};
  info.boxes = {.scale = BoxScale{.x = 2, .y = 2}};
  return info;
}

TEST(ChatAnswer, boxes_are_told_in_the_pictures_pixels_streamed_or_not) {
  const std::vector<Event> events = events_of(
      {"[{\"bbox_2",
       "d\": [1, 2.5, 30, 40], \"label\"",
       ": \"cat\"},",
       " {\"point_2d\": [5, 6]}",
       "]"}
  );
  const Json expected = parsed(R"([
    {"choice":0,"kind":"box","label":"cat","written":[1,2.5,30,40],"pixels":[2,5,60,80]},
    {"choice":0,"kind":"point","label":"","written":[5,6],"pixels":[10,12]}])");
  EXPECT_EQ(answer_of(events, info_with_details())["whimbrel"]["boxes"], expected);
  ChatAnswerInfo with_usage = info_with_details();
  with_usage.include_usage = true;
  for (const ChatAnswerInfo& info : {info_with_details(), with_usage}) {
    const std::vector<Json> chunks = chunks_of(stream_of(events, info));
    EXPECT_EQ(chunks.back()["whimbrel"]["boxes"], expected);
    for (size_t i = 0; i + 1 < chunks.size(); ++i) {
      EXPECT_FALSE(chunks[i].contains("whimbrel"));
    }
  }
}

TEST(ChatAnswer, boxes_that_are_not_mapped_have_no_pixels) {
  ChatAnswerInfo info = info_with_details();
  info.boxes.scale.reset();
  const Json boxes =
      answer_of(events_of({R"({"bbox_2d":[1,2,3,4]})", ""}), info)["whimbrel"]["boxes"];
  ASSERT_EQ(boxes.size(), 1U);
  EXPECT_EQ(boxes[0]["written"], parsed("[1,2,3,4]"));
  EXPECT_TRUE(boxes[0].at("pixels").is_null());
}

TEST(ChatAnswer, boxes_of_all_choices_stand_in_their_order) {
  ChatAnswerInfo info = info_with_details();
  info.choices = 2;
  info.boxes.notation = BoxNotation::pairs;
  const std::vector<Event> events = {
      Admitted{},
      AnswerToken{.choice = 1, .text = "dog(5,6),"},
      AnswerToken{.choice = 0, .text = "cat(1,2),(3,4)"},
      AnswerFinished{.choice = 0},
      AnswerFinished{.choice = 1, .text = "(7,8)"},
      RequestFinished{}
  };
  const Json expected = parsed(R"([
    {"choice":0,"kind":"box","label":"cat","written":[1,2,3,4],"pixels":[2,4,6,8]},
    {"choice":1,"kind":"box","label":"dog","written":[5,6,7,8],"pixels":[10,12,14,16]}])");
  EXPECT_EQ(answer_of(events, info)["whimbrel"]["boxes"], expected);
  EXPECT_EQ(chunks_of(stream_of(events, info)).back()["whimbrel"]["boxes"], expected);
}

TEST(ChatAnswer, boxes_of_reasoning_and_of_calls_are_none_but_those_of_broken_calls) {
  ChatAnswerInfo info = info_with_details();
  info.form.reasoning_opened = true;
  const std::string box = R"({"bbox_2d": [1, 2, 3, 4]})";
  const std::string call = R"(<tool_call>{"name": "add", "arguments": )" + box + "}</tool_call>";
  const auto count = [&](const std::string& text) {
    const std::vector<Event> events = events_of({text, ""});
    const size_t whole = answer_of(events, info)["whimbrel"]["boxes"].size();
    EXPECT_EQ(chunks_of(stream_of(events, info)).back()["whimbrel"]["boxes"].size(), whole);
    return whole;
  };
  EXPECT_EQ(count(box + "</think>None."), 0U);
  EXPECT_EQ(count("Hm.</think>" + box), 1U);
  EXPECT_EQ(count("Hm.</think>" + call), 0U);
  EXPECT_EQ(count("Hm.</think><tool_call>\n{\"name\": \"add\", \"arguments\": " + box), 1U);
}

TEST(ChatAnswer, a_failure_is_an_error_of_its_kind) {
  const auto failure = [](Fault fault, const std::string& message) {
    ChatAnswer answer(some_info(), bytes_of_token);
    answer.push(Admitted{});
    answer.push(RequestFailed{fault, message});
    EXPECT_TRUE(answer.ended());
    return answer.failure().value_or(http::ApiError{});
  };
  EXPECT_EQ(http::status_of(failure(Fault::input, "[grammar] got …").kind), 400);
  EXPECT_EQ(http::status_of(failure(Fault::memory, "").kind), 503);
  EXPECT_EQ(http::status_of(failure(Fault::interrupted, "").kind), 503);
  const http::ApiError numbers = failure(Fault::model, "[logits] got numbers that …");
  EXPECT_EQ(http::status_of(numbers.kind), 500);
  EXPECT_EQ(numbers.code, "numerical_error");
  EXPECT_EQ(failure(Fault::io, "/a/path").message.find("/a/path"), std::string::npos);
}

TEST(ChatStream, has_the_chunks_of_the_api_in_their_order) {
  ChatAnswerInfo info = some_info();
  info.include_usage = true;
  const std::vector<Json> chunks = chunks_of(stream_of(events_of({"Hel", "", "lo", ""}), info));
  ASSERT_EQ(chunks.size(), 5U);
  for (const Json& chunk : chunks) {
    EXPECT_EQ(chunk["id"], "chatcmpl-abc");
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    EXPECT_EQ(chunk["created"], 1'700'000'000);
    EXPECT_EQ(chunk["model"], "m");
    EXPECT_EQ(chunk["system_fingerprint"], "fp");
    EXPECT_TRUE(chunk.contains("usage"));
  }
  const auto choice = [](std::string_view delta, std::string_view reason) {
    return parsed(
        R"([{"index":0,"delta":)" + std::string(delta) + R"(,"logprobs":null,"finish_reason":)" +
        std::string(reason) + "}]"
    );
  };
  EXPECT_EQ(chunks[0]["choices"], choice(R"({"role":"assistant","content":""})", "null"));
  EXPECT_EQ(chunks[1]["choices"], choice(R"({"content":"Hel"})", "null"));
  EXPECT_EQ(chunks[2]["choices"], choice(R"({"content":"lo"})", "null"));
  EXPECT_EQ(chunks[3]["choices"], choice("{}", "\"stop\""));
  EXPECT_TRUE(chunks[3]["usage"].is_null());
  EXPECT_EQ(chunks[4]["choices"], Json::array());
  EXPECT_EQ(chunks[4]["usage"]["completion_tokens"], 3);
  EXPECT_EQ(chunks[4]["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
  EXPECT_EQ(chunks[4]["timings"]["predicted_n"], 3);
}

TEST(ChatStream, without_usage_the_last_choice_brings_the_timings) {
  const std::vector<Json> chunks = chunks_of(stream_of(events_of({"a", ""})));
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks[2]["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(chunks[2].contains("timings"));
  EXPECT_FALSE(chunks[2].contains("usage"));
  EXPECT_FALSE(chunks[1].contains("timings"));
}

TEST(ChatStream, a_call_comes_with_its_name_first_and_its_arguments_behind) {
  const std::string text(kCall);
  const std::vector<Json> chunks =
      chunks_of(stream_of(events_of({"Well. ", text.substr(0, 55), text.substr(55), ""})));
  EXPECT_EQ(chunks[1]["choices"][0]["delta"], parsed(R"({"content":"Well."})"));
  EXPECT_EQ(chunks[2]["choices"][0]["delta"], parsed(R"({"tool_calls":[{"index":0,
    "id":"call_abc_0_0","type":"function","function":{"name":"add","arguments":""}}]})"));
  std::string arguments;
  for (size_t i = 3; i + 1 < chunks.size(); ++i) {
    const Json& call = chunks[i]["choices"][0]["delta"]["tool_calls"][0];
    EXPECT_EQ(call["index"], 0);
    EXPECT_EQ(call.size(), 2U);
    arguments += call["function"]["arguments"].get<std::string>();
  }
  EXPECT_EQ(arguments, R"({"a": 1})");
  EXPECT_EQ(chunks.back()["choices"][0]["finish_reason"], "tool_calls");
}

TEST(ChatStream, choices_come_as_they_are_drawn_each_under_its_index) {
  ChatAnswerInfo info = some_info();
  info.choices = 2;
  const std::vector<Json> chunks = chunks_of(stream_of(
      {Admitted{},
       AnswerToken{.choice = 1, .text = "b"},
       AnswerToken{.choice = 0, .text = "a"},
       AnswerFinished{.choice = 1, .tokens = 1},
       AnswerToken{.choice = 0, .text = "A"},
       AnswerFinished{.choice = 0, .reason = AnswerEnd::length, .tokens = 2},
       RequestFinished{}},
      info
  ));
  std::vector<int> indexes;
  for (const Json& chunk : chunks) {
    indexes.push_back(chunk["choices"].at(0)["index"].get<int>());
  }
  EXPECT_EQ(indexes, (std::vector<int>{0, 1, 1, 0, 1, 0, 0}));
  EXPECT_EQ(chunks[4]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(chunks[6]["choices"][0]["finish_reason"], "length");
}

TEST(ChatStream, progress_comes_where_it_was_asked_for) {
  const std::vector<Event> events = {
      Admitted{.prompt_tokens = 9, .cached_tokens = 4},
      PromptProgress{.done = 6, .total = 9},
      AnswerFinished{},
      RequestFinished{}
  };
  EXPECT_EQ(chunks_of(stream_of(events)).size(), 2U);
  ChatAnswerInfo info = some_info();
  info.return_progress = true;
  const std::vector<Json> chunks = chunks_of(stream_of(events, info));
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks[1]["prompt_progress"], parsed(R"({"total":9,"cache":4,"processed":6})"));
  EXPECT_EQ(chunks[1]["choices"][0]["delta"], Json::object());
}

TEST(ChatStream, a_failure_is_a_frame_with_the_error_and_no_end_of_a_good_stream) {
  ChatStream stream(some_info(), bytes_of_token);
  stream.push(Admitted{});
  stream.push(AnswerToken{.text = "a"});
  const std::vector<std::string> frames =
      frames_of(stream.push(RequestFailed{Fault::model, "[logits] got numbers"}));
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(parsed(frames[0]), parsed(R"({"error":{"message":"[logits] got numbers",
    "type":"server_error","param":null,"code":"numerical_error"}})"));
  EXPECT_TRUE(stream.ended());
}

TEST(ChatStream, log_probabilities_of_tokens_that_are_held_back_come_with_the_next_chunk) {
  ChatAnswerInfo info = some_info();
  info.logprobs = true;
  const std::vector<Json> chunks = chunks_of(stream_of(
      {Admitted{},
       AnswerToken{.id = 1, .text = "", .logprob = TokenLogprob{1, -1}},
       AnswerToken{.id = 2, .text = "ab", .logprob = TokenLogprob{2, -1}},
       AnswerToken{.id = 3, .text = "", .logprob = TokenLogprob{3, -1}},
       AnswerFinished{.tokens = 3},
       RequestFinished{}},
      info
  ));
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_TRUE(chunks[0]["choices"][0]["logprobs"].is_null());
  EXPECT_EQ(chunks[1]["choices"][0]["logprobs"]["content"].size(), 2U);
  EXPECT_EQ(chunks[2]["choices"][0]["logprobs"]["content"][0]["token"], "t3");
}

/// A choice's message and logprobs, put together from a stream as a client does.
Json put_together(const std::vector<Json>& chunks, int index) {
  Json message = Json::object();
  Json logprobs = Json::array();
  std::map<int, Json> calls;
  std::string reason;
  for (const Json& chunk : chunks) {
    for (const Json& choice : chunk["choices"]) {
      if (choice["index"] != index) {
        continue;
      }
      EXPECT_TRUE(reason.empty()) << "a chunk behind the finish_reason";
      for (const auto& [key, value] : choice["delta"].items()) {
        if (key == "tool_calls") {
          Json& call = calls[value[0]["index"].get<int>()];
          if (value[0].contains("id")) {
            EXPECT_TRUE(call.is_null());
            call = value[0];
            call.erase("index");
          } else {
            call["function"]["arguments"] = call["function"]["arguments"].get<std::string>() +
                                            value[0]["function"]["arguments"].get<std::string>();
          }
        } else {
          message[key] = message.value(key, "") + value.get<std::string>();
        }
      }
      if (!choice["logprobs"].is_null()) {
        for (const Json& item : choice["logprobs"]["content"]) {
          logprobs.push_back(item);
        }
      }
      reason = choice["finish_reason"].is_null() ? "" : choice["finish_reason"].get<std::string>();
    }
  }
  for (const auto& [at, call] : calls) {
    message["tool_calls"].push_back(call);
  }
  return {{"message", message}, {"logprobs", logprobs}, {"finish_reason", reason}};
}

/// An answer put together from parts that matter to the parsers.
std::string random_text(std::mt19937& random) {
  const std::vector<std::string> parts = {
      "Hello",
      " ",
      "\n",
      "äß",
      "\xF0\x9F\x98\x80",
      "<think>",
      "</think>",
      "<tool_call>",
      "</tool_call>",
      std::string(kCall),
      std::string(kCall),
      "<",
      "{\"name\": \"add\"",
      "\"}",
      "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"b\": [",
      "\\",
      "\r\n",
  };
  std::string text = random() % 3 == 0 ? "<think>hm</think>" : "";
  for (size_t i = random() % 12; i > 0; --i) {
    text += parts[random() % parts.size()];
  }
  return text;
}

// However an answer is cut into tokens, the stream adds up to the answer in one piece.
TEST(ChatStream, pieces_add_up_to_the_whole_answer) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    const std::string text = random_text(random);
    ChatAnswerInfo info = some_info();
    info.form.reasoning_opened = random() % 4 == 0;
    info.logprobs = random() % 2 == 0;
    const AnswerEnd end = random() % 4 == 0 ? AnswerEnd::length : AnswerEnd::stop;
    const std::vector<Event> events = events_of(cut_at_random(text, random), end);
    const Json whole = answer_of(events_of({text}, end), info)["choices"][0];
    const Json cut = answer_of(events, info)["choices"][0];
    EXPECT_EQ(cut["message"], whole["message"]) << text;
    EXPECT_EQ(cut["finish_reason"], whole["finish_reason"]) << text;
    const Json streamed = put_together(chunks_of(stream_of(events, info)), 0);
    const Json& message = cut["message"];
    EXPECT_EQ(streamed["finish_reason"], cut["finish_reason"]) << text;
    EXPECT_EQ(
        streamed["message"]["content"], message["content"].is_null() ? "" : message["content"]
    ) << text;
    EXPECT_EQ(
        streamed["message"].value("reasoning_content", ""), message.value("reasoning_content", "")
    ) << text;
    // The stream also began the calls that broke.
    for (const Json& call : message.value("tool_calls", Json::array())) {
      const Json calls = streamed["message"]["tool_calls"];
      EXPECT_NE(std::find(calls.begin(), calls.end(), call), calls.end()) << text;
    }
    EXPECT_EQ(streamed["logprobs"], info.logprobs ? cut["logprobs"]["content"] : Json::array());
  }
}

TEST(ChatStream, several_calls_stand_under_their_own_indexes) {
  const std::string two = std::string(kCall) + "\n" + std::string(kCall);
  const Json streamed = put_together(chunks_of(stream_of(events_of({two, ""}))), 0);
  const Json answer = answer_of(events_of({two, ""}))["choices"][0]["message"];
  EXPECT_EQ(streamed["message"]["tool_calls"], answer["tool_calls"]);
  ASSERT_EQ(answer["tool_calls"].size(), 2U);
  EXPECT_NE(answer["tool_calls"][0]["id"], answer["tool_calls"][1]["id"]);
}

}  // namespace
}  // namespace whimbrel::wire
