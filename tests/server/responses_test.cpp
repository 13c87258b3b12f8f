#include <fmt/format.h>
#include <gtest/gtest.h>

#include "event_stream.h"
#include "refusal.h"
#include "server/responses_request.h"
#include "server/responses_writer.h"

namespace whimbrel::wire {
namespace {

constexpr std::string_view kCall =
    "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>";

Json json_of(std::string_view text) {
  return Json::parse(text);
}

ResponsesRequest parsed(std::string_view members) {
  return parse_responses_request(fmt::format(R"({{"model":"m","input":"hi",{}}})", members), {});
}

ChatMessages conversation_of(std::string_view input) {
  return parse_responses_request(fmt::format(R"({{"input":{}}})", input), {}).chat.conversation;
}

std::string field_of(std::string_view members) {
  return refused_field([&] { parsed(members); });
}

std::string field_of_input(std::string_view input) {
  return refused_field([&] { conversation_of(input); });
}

TEST(ResponsesRequest, reads_every_field) {
  const ResponsesRequest request = parsed(
      R"("instructions":"Be brief.","max_output_tokens":7,"temperature":0.5,"top_p":0.9,)"
      R"("stream":true,"reasoning":{"effort":"low"},"store":true,"metadata":{"a":"b"},)"
      R"("tools":[{"type":"function","name":"add","parameters":{"type":"object"},"strict":true}],)"
      R"("tool_choice":{"type":"function","name":"add"},"parallel_tool_calls":false,"odd":1)"
  );
  const ChatCompletionRequest& chat = request.chat;
  EXPECT_EQ(chat.generation.model, "m");
  EXPECT_EQ(chat.generation.max_tokens, 7);
  EXPECT_EQ(chat.generation.sampling.temperature, 0.5);
  EXPECT_EQ(chat.generation.sampling.top_p, 0.9);
  EXPECT_TRUE(chat.generation.stream);
  EXPECT_EQ(chat.template_kwargs, json_of(R"({"enable_thinking":true,"reasoning_effort":"low"})"));
  EXPECT_EQ(chat.tools.choice, ToolChoice::required);
  EXPECT_FALSE(chat.tools.parallel);
  EXPECT_EQ(chat.tools.template_tools, json_of(R"([{"type":"function","function":{"name":"add",
    "parameters":{"type":"object"},"strict":true}}])"));
  EXPECT_EQ(chat.ignored, std::vector<std::string>{"odd"});
  EXPECT_EQ(chat.conversation.messages, json_of(R"([{"role":"system","content":"Be brief."},
    {"role":"user","content":"hi"}])"));
  EXPECT_EQ(request.repeated["max_output_tokens"], 7);
  EXPECT_EQ(request.repeated["metadata"], json_of(R"({"a":"b"})"));
  EXPECT_EQ(request.repeated["top_p"], 0.9);
  EXPECT_FALSE(request.repeated.contains("store"));
}

TEST(ResponsesRequest, top_p_of_nothing_keeps_the_best_token) {
  EXPECT_NO_THROW(require_valid(apply(parsed(R"("top_p":0)").chat.generation.sampling, {})));
}

TEST(ResponsesRequest, items_become_messages) {
  const ChatMessages conversation = conversation_of(R"([
    {"role":"user","content":[{"type":"input_image","image_url":"data:a","detail":"low"},
      {"type":"input_text","text":"What?"}]},
    {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]},
    {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Well."}]},
    {"type":"function_call","call_id":"c1","name":"add","arguments":"{\"a\":1}"},
    {"type":"function_call","call_id":"c2","name":"add","arguments":""},
    {"type":"function_call_output","call_id":"c1","output":"5"},
    {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"6"}]},
    {"type":"message","role":"assistant","content":"Done."}])");
  EXPECT_EQ(conversation.messages, json_of(R"([
    {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:a"}},
      {"type":"text","text":"What?"}]},
    {"role":"assistant","content":"Well.","reasoning_content":"Hm.","tool_calls":[
      {"id":"c1","type":"function","function":{"name":"add","arguments":{"a":1}}},
      {"id":"c2","type":"function","function":{"name":"add","arguments":{}}}]},
    {"role":"tool","tool_call_id":"c1","content":"5"},
    {"role":"tool","tool_call_id":"c2","content":"6"},
    {"role":"assistant","content":"Done."}])"));
  const ChatMessages pictures = conversation_of(R"([
    {"role":"assistant","content":[{"type":"input_image","image_url":"data:a"}]},
    {"role":"assistant","content":"b"}])");
  EXPECT_EQ(pictures.messages.size(), 2U);
  ASSERT_EQ(conversation.media.size(), 1U);
  EXPECT_EQ(conversation.media[0].param, "input[0].content[0].image_url");
  EXPECT_EQ(conversation.media[0].detail, ImageDetail::low);
}

TEST(ResponsesRequest, items_are_held_to_their_shape_and_the_field_is_named) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"null", "input"},
      {"5", "input"},
      {"[]", "input"},
      {"[5]", "input[0]"},
      {R"([{"type":"item_reference","id":"a"}])", "input[0].type"},
      {R"([{"content":"a"}])", "input[0].role"},
      {R"([{"role":"tool","content":"a"}])", "input[0].role"},
      {R"([{"role":"user"}])", "input[0].content"},
      {R"([{"role":"user","content":5}])", "input[0].content"},
      {R"([{"role":"user","content":[{"type":"input_file"}]}])", "input[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"input_text"}]}])", "input[0].content[0].text"},
      {R"([{"role":"user","content":[{"type":"input_image"}]}])", "input[0].content[0].image_url"},
      {R"([{"role":"user","content":[{"type":"input_image","image_url":{"url":"a"}}]}])",
       "input[0].content[0].image_url"},
      {R"([{"type":"function_call","name":"a","arguments":"{}"}])", "input[0].call_id"},
      {R"([{"type":"function_call","call_id":"c","name":"a","arguments":{}}])",
       "input[0].arguments"},
      {R"([{"type":"function_call_output","call_id":"c"}])", "input[0].output"},
      {R"([{"type":"reasoning","content":"a"}])", "input[0].content"},
  };
  for (const auto& [input, field] : cases) {
    EXPECT_EQ(field_of_input(input), field) << input;
  }
}

TEST(ResponsesRequest, refuses_what_needs_a_store_and_fields_out_of_range) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"("previous_response_id":"resp_1")", "previous_response_id"},
      {R"("conversation":"c")", "conversation"},
      {R"("prompt":{"id":"p"})", "prompt"},
      {R"("background":true)", "background"},
      {R"("background":false,"truncation":"disabled","store":false)", "taken"},
      {R"("truncation":"auto")", "truncation"},
      {R"("store":1)", "store"},
      {R"("max_output_tokens":0)", "max_output_tokens"},
      {R"("max_output_tokens":2147483648)", "max_output_tokens"},
      {R"("temperature":"1")", "temperature"},
      {R"("temperature":100.5)", "temperature"},
      {R"("top_p":1.5)", "top_p"},
      {R"("stream":"yes")", "stream"},
      {R"("reasoning":{"effort":"huge"})", "reasoning.effort"},
      {R"("tools":[{"type":"web_search"}])", "tools[0].type"},
      {R"("tools":[{"type":"function"}])", "tools[0].name"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("text":{"format":{"type":"xml"}})", "text.format.type"},
      {R"("text":{"format":{"type":"json_schema","name":"a"}})", "text.format.schema"},
      {R"("text":{"format":{"type":"json_object"}},"tools":[{"type":"function","name":"a"}])",
       "text.format"},
  };
  for (const auto& [members, field] : cases) {
    EXPECT_EQ(field_of(members), field) << members;
  }
  EXPECT_EQ(
      parsed(R"("text":{"format":{"type":"json_schema","name":"a","schema":{"type":"array"}}})")
          .chat.format.schema,
      json_of(R"({"type":"array"})")
  );
}

ResponseInfo some_info() {
  return {
      .id = "resp_abc",
      .created = 1'700'000'000,
      .model = "m",
      .form = {.tool_format = ToolFormat::hermes, .tools = {{.name = "add"}}},
      .repeated = {{"tool_choice", "auto"}}
  };
}

std::vector<Event> events_of(
    const std::vector<std::string>& pieces, AnswerEnd end = AnswerEnd::stop
) {
  std::vector<Event> events = {Admitted{.prompt_tokens = 9, .cached_tokens = 4}};
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    events.emplace_back(AnswerToken{.text = pieces[i]});
  }
  events.emplace_back(AnswerFinished{.reason = end, .text = pieces.back(), .tokens = 3});
  events.emplace_back(RequestFinished{});
  return events;
}

struct Written {
  Json json;
  std::vector<Json> events;
};

Written written(const std::vector<Event>& events, ResponseInfo info = some_info()) {
  ResponseWriter writer(std::move(info));
  std::string bytes;
  for (const Event& event : events) {
    EXPECT_FALSE(writer.ended());
    bytes += writer.push(event);
  }
  EXPECT_TRUE(writer.ended());
  return {writer.json(), named_events_of(bytes)};
}

TEST(ResponseWriter, has_the_shape_of_the_api) {
  EXPECT_EQ(written(events_of({"Hel", "lo"})).json, json_of(R"({
    "id":"resp_abc","object":"response","created_at":1700000000,"status":"completed","error":null,
    "incomplete_details":null,"model":"m",
    "output":[{"type":"message","id":"msg_abc_0","status":"completed","role":"assistant",
      "content":[{"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}]}],
    "previous_response_id":null,"store":false,"truncation":"disabled",
    "usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":0},"output_tokens":3,
      "output_tokens_details":{"reasoning_tokens":0},"total_tokens":12},
    "tool_choice":"auto"})"));
}

TEST(ResponseWriter, events_come_in_the_order_of_the_api) {
  const std::vector<Json> events = written(events_of({"Hel", "lo", ""})).events;
  const std::vector<std::string> types = {
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
  };
  ASSERT_EQ(events.size(), types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    EXPECT_EQ(events[i]["type"], types[i]);
    EXPECT_EQ(events[i]["sequence_number"], i);
  }
  EXPECT_EQ(events[0]["response"]["status"], "in_progress");
  EXPECT_TRUE(events[0]["response"]["usage"].is_null());
  EXPECT_EQ(events[4], json_of(R"({"type":"response.output_text.delta","sequence_number":4,
    "item_id":"msg_abc_0","output_index":0,"content_index":0,"delta":"Hel","logprobs":[]})"));
  EXPECT_EQ(events[6]["text"], "Hello");
  EXPECT_EQ(events[9]["response"], written(events_of({"Hel", "lo", ""})).json);
}

TEST(ResponseWriter, reasoning_and_calls_are_items_of_their_own) {
  ResponseInfo info = some_info();
  info.form.reasoning_opened = true;
  const Written all =
      written(events_of({"Hm.", "</think>", "Well.", std::string(kCall), ""}), info);
  EXPECT_EQ(all.json["output"], json_of(R"([
    {"type":"reasoning","id":"rs_abc_0","status":"completed","summary":[],
      "content":[{"type":"reasoning_text","text":"Hm."}]},
    {"type":"message","id":"msg_abc_1","status":"completed","role":"assistant",
      "content":[{"type":"output_text","text":"Well.","annotations":[],"logprobs":[]}]},
    {"type":"function_call","id":"fc_abc_2","call_id":"call_abc_2","name":"add",
      "arguments":"{\"a\": 1}","status":"completed"}])"));
  EXPECT_EQ(all.json["usage"]["output_tokens_details"]["reasoning_tokens"], 2);
  for (const Json& event : all.events) {
    if (event["type"] == "response.function_call_arguments.done") {
      EXPECT_EQ(event["arguments"], "{\"a\": 1}");
      EXPECT_FALSE(event.contains("content_index"));
    }
  }
}

TEST(ResponseWriter, an_answer_that_was_cut_is_incomplete) {
  const Written cut = written(events_of({"a", ""}, AnswerEnd::length));
  EXPECT_EQ(cut.json["status"], "incomplete");
  EXPECT_EQ(cut.json["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(cut.json["output"][0]["status"], "incomplete");
  EXPECT_EQ(cut.events.back()["type"], "response.incomplete");
}

TEST(ResponseWriter, a_call_that_breaks_is_followed_by_its_text) {
  const std::string broken = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": ";
  const Json output = written(events_of({broken, ""}, AnswerEnd::length)).json["output"];
  ASSERT_EQ(output.size(), 2U);
  EXPECT_EQ(output[0]["status"], "incomplete");
  EXPECT_EQ(output[1]["content"][0]["text"], broken);
}

TEST(ResponseWriter, a_failure_ends_the_stream) {
  ResponseWriter writer(some_info());
  writer.push(Admitted{});
  const std::vector<Json> events =
      named_events_of(writer.push(RequestFailed{Fault::model, "[logits] got"}));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["type"], "response.failed");
  EXPECT_EQ(
      events[0]["response"]["error"],
      json_of(R"({"code":"numerical_error","message":"[logits] got"})")
  );
  EXPECT_TRUE(writer.failure());
}

// The items that the events add up to are those of the answer, however it was cut.
TEST(ResponseWriter, events_add_up_to_the_answer) {
  const std::vector<std::string> parts = {
      "Hello",
      " ",
      "\n",
      "ä",
      "</think>",
      "<tool_call>",
      "</tool_call>",
      std::string(kCall),
      "<",
      "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"b\": [",
  };
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::string text = random() % 3 == 0 ? "<think>hm</think>" : "";
    for (size_t i = random() % 10; i > 0; --i) {
      text += parts[random() % parts.size()];
    }
    const Written cut = written(events_of(cut_at_random(text, random)));
    EXPECT_EQ(cut.json["output"], written(events_of({text})).json["output"]) << text;
    Json items = Json::array();
    std::string deltas;
    for (const Json& event : cut.events) {
      if (event["type"] == "response.output_item.added") {
        deltas.clear();
      } else if (event["type"].get<std::string>().ends_with(".delta")) {
        EXPECT_EQ(event["output_index"], items.size());
        deltas += event["delta"].get<std::string>();
      } else if (event["type"] == "response.output_item.done") {
        const Json& item = event["item"];
        items.push_back(item);
        const Json& whole =
            item["type"] == "function_call" ? item["arguments"] : item["content"][0]["text"];
        EXPECT_EQ(deltas, whole.get<std::string>());
      }
    }
    EXPECT_EQ(items, cut.json["output"]) << text;
  }
}

}  // namespace
}  // namespace whimbrel::wire
