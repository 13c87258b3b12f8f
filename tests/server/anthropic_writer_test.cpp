#include "server/anthropic_writer.h"

#include <gtest/gtest.h>

#include "event_stream.h"

namespace whimbrel::wire {
namespace {

constexpr std::string_view kCall =
    "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>";

MessageInfo some_info() {
  return {
      .id = "msg_abc",
      .model = "m",
      .form = {.tool_format = ToolFormat::hermes, .tools = {{.name = "add"}}}
  };
}

/// The events of a request with an answer in these pieces; the last comes with its end.
std::vector<Event> events_of(const std::vector<std::string>& pieces, AnswerFinished end = {}) {
  std::vector<Event> events = {Admitted{.prompt_tokens = 9, .cached_tokens = 4}};
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    events.emplace_back(AnswerToken{.text = pieces[i]});
  }
  end.text = pieces.back();
  end.tokens = 3;
  events.emplace_back(std::move(end));
  events.emplace_back(RequestFinished{});
  return events;
}

Json answer_of(const std::vector<Event>& events, MessageInfo info = some_info()) {
  MessageAnswer answer(std::move(info));
  for (const Event& event : events) {
    EXPECT_FALSE(answer.ended());
    answer.push(event);
  }
  EXPECT_TRUE(answer.ended());
  return answer.json();
}

std::string stream_of(const std::vector<Event>& events, MessageInfo info = some_info()) {
  MessageStream stream(std::move(info));
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

TEST(MessageAnswer, has_the_shape_of_the_api) {
  EXPECT_EQ(answer_of(events_of({"Hel", "lo"})), parsed(R"({
    "id":"msg_abc","type":"message","role":"assistant","model":"m",
    "content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","stop_sequence":null,
    "usage":{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,
      "output_tokens":3}})"));
}

TEST(MessageAnswer, blocks_stand_in_the_order_in_which_they_came) {
  MessageInfo info = some_info();
  info.form.reasoning_opened = true;
  const Json json =
      answer_of(events_of({"Hm.</think>Well.", std::string(kCall), std::string(kCall), ""}), info);
  EXPECT_EQ(json["content"], parsed(R"([
    {"type":"thinking","thinking":"Hm.","signature":""},
    {"type":"text","text":"Well."},
    {"type":"tool_use","id":"toolu_abc_0","name":"add","input":{"a":1}},
    {"type":"tool_use","id":"toolu_abc_1","name":"add","input":{"a":1}}])"));
  EXPECT_EQ(json["stop_reason"], "tool_use");
}

TEST(MessageAnswer, tells_why_it_ended) {
  const auto reason = [](AnswerFinished end) {
    return answer_of(events_of({"a", ""}, std::move(end)));
  };
  EXPECT_EQ(reason({.reason = AnswerEnd::length})["stop_reason"], "max_tokens");
  const Json stopped = reason({.stop_text = "END"});
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], "END");
}

TEST(MessageAnswer, a_call_that_breaks_is_text_as_it_was_written) {
  const std::string broken = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": ";
  const Json json = answer_of(events_of({"Well. " + broken, ""}, {.reason = AnswerEnd::length}));
  ASSERT_EQ(json["content"].size(), 1U);
  EXPECT_EQ(json["content"][0]["text"], "Well." + broken);
  EXPECT_EQ(json["stop_reason"], "max_tokens");
}

TEST(MessageAnswer, arguments_that_no_program_can_hold_stay_text) {
  const std::string call =
      "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1e999}}\n</tool_call>";
  EXPECT_EQ(
      answer_of(events_of({call, ""}))["content"][0]["input"],
      parsed(R"({"arguments":"{\"a\": 1e999}"})")
  );
}

TEST(MessageAnswer, a_failure_is_no_answer) {
  MessageAnswer answer(some_info());
  answer.push(RequestFailed{Fault::input, "[grammar] got"});
  EXPECT_TRUE(answer.ended());
  EXPECT_EQ(http::status_of(answer.failure().value().kind), 400);
}

TEST(MessageStream, has_the_events_of_the_api_in_their_order) {
  const std::vector<Json> events = named_events_of(stream_of(events_of({"Hel", "lo", ""})));
  const std::vector<Json> expected = {
      parsed(R"({"type":"message_start","message":{"id":"msg_abc","type":"message",
        "role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,
        "usage":{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,
          "output_tokens":0}}})"),
      parsed(R"({"type":"ping"})"),
      parsed(
          R"({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})"
      ),
      parsed(
          R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}})"
      ),
      parsed(
          R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}})"
      ),
      parsed(R"({"type":"content_block_stop","index":0})"),
      parsed(R"({"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},
        "usage":{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,
          "output_tokens":3}})"),
      parsed(R"({"type":"message_stop"})"),
  };
  EXPECT_EQ(events, expected);
}

TEST(MessageStream, a_call_is_a_block_whose_input_comes_as_json_text) {
  const std::vector<Json> events = named_events_of(stream_of(events_of({std::string(kCall), ""})));
  ASSERT_EQ(events.size(), 7U);
  EXPECT_EQ(events[2]["content_block"], parsed(R"({"type":"tool_use","id":"toolu_abc_0",
    "name":"add","input":{}})"));
  EXPECT_EQ(
      events[3]["delta"], parsed(R"({"type":"input_json_delta","partial_json":"{\"a\": 1}"})")
  );
  EXPECT_EQ(events[4]["type"], "content_block_stop");
  EXPECT_EQ(events[5]["delta"]["stop_reason"], "tool_use");
}

TEST(MessageStream, a_failure_is_an_error_event_and_the_end) {
  MessageStream stream(some_info());
  stream.push(Admitted{});
  const std::vector<Json> events =
      named_events_of(stream.push(RequestFailed{Fault::input, "[grammar] got"}));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0], parsed(R"({"type":"error","error":{"type":"invalid_request_error",
    "message":"[grammar] got"}})"));
  EXPECT_TRUE(stream.ended());
}

/// The content blocks, put together from events as a client does; the blocks of calls that broke
/// have no JSON and are left out.
Json put_together(const std::vector<Json>& events) {
  Json blocks = Json::array();
  std::string input;
  bool is_open = false;
  for (const Json& event : events) {
    if (event["type"] == "content_block_start") {
      EXPECT_FALSE(is_open);
      is_open = true;
      input.clear();
      blocks.push_back(event["content_block"]);
    } else if (event["type"] == "content_block_delta") {
      EXPECT_TRUE(is_open);
      const Json& delta = event["delta"];
      if (delta["type"] == "input_json_delta") {
        input += delta["partial_json"].get<std::string>();
      } else {
        const char* key = delta["type"] == "text_delta" ? "text" : "thinking";
        blocks.back()[key] = blocks.back()[key].get<std::string>() + delta[key].get<std::string>();
      }
    } else if (event["type"] == "content_block_stop") {
      EXPECT_TRUE(is_open);
      is_open = false;
      if (blocks.back()["type"] == "tool_use" && Json::accept(input)) {
        blocks.back()["input"] = Json::parse(input);
      } else if (blocks.back()["type"] == "tool_use") {
        blocks.erase(blocks.size() - 1);
      }
    }
  }
  EXPECT_FALSE(is_open);
  return blocks;
}

/// Neighbouring texts as one: a call that broke parts the blocks of a stream.
Json joined(const Json& blocks) {
  Json all = Json::array();
  for (const Json& block : blocks) {
    if (!all.empty() && block["type"] == "text" && all.back()["type"] == "text") {
      all.back()["text"] = all.back()["text"].get<std::string>() + block["text"].get<std::string>();
    } else {
      all.push_back(block);
    }
  }
  return all;
}

// However an answer is cut into tokens, the blocks add up to the answer in one piece.
TEST(MessageStream, pieces_add_up_to_the_whole_answer) {
  const std::vector<std::string> parts = {
      "Hello",
      " ",
      "\n",
      "ä",
      "\xF0\x9F\x98\x80",
      "<think>",
      "</think>",
      "<tool_call>",
      "</tool_call>",
      std::string(kCall),
      "<",
      "{\"name\": \"add\"",
      "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"b\": [",
  };
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    MessageInfo info = some_info();
    info.form.reasoning_opened = random() % 4 == 0;
    std::string text = random() % 3 == 0 ? "<think>hm</think>" : "";
    for (size_t i = random() % 12; i > 0; --i) {
      text += parts[random() % parts.size()];
    }
    const std::vector<Event> events = events_of(cut_at_random(text, random));
    const Json whole = answer_of(events_of({text}), info);
    EXPECT_EQ(answer_of(events, info), whole) << text;
    const std::vector<Json> streamed = named_events_of(stream_of(events, info));
    EXPECT_EQ(joined(put_together(streamed)), whole["content"]) << text;
    EXPECT_EQ(streamed[streamed.size() - 2]["delta"]["stop_reason"], whole["stop_reason"]) << text;
  }
}

TEST(MessagesApi, small_answers_have_their_shape) {
  EXPECT_EQ(ping_event(), "event: ping\ndata: {\"type\":\"ping\"}\n\n");
  EXPECT_EQ(token_count_json(5).dump(), R"({"input_tokens":5})");
}

}  // namespace
}  // namespace whimbrel::wire
