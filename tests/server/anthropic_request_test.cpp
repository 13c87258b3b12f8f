#include "server/anthropic_request.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "refusal.h"

namespace whimbrel::wire {
namespace {

constexpr std::string_view kHello = R"("messages":[{"role":"user","content":"hi"}])";
constexpr std::string_view kTools =
    R"("tools":[{"name":"add","description":"Adds.","input_schema":{"type":"object"}},)"
    R"({"type":"custom","name":"sub","input_schema":{}}])";

ChatCompletionRequest parsed_body(std::string_view members) {
  return parse_messages_request(fmt::format(R"({{"model":"m","max_tokens":9,{}}})", members), {});
}

ChatCompletionRequest parsed(std::string_view members) {
  return parsed_body(fmt::format("{},{}", kHello, members));
}

std::string field_of(std::string_view members) {
  return refused_field([&] { parsed(members); });
}

std::string field_of_messages(std::string_view messages) {
  return refused_field([&] { parsed_body(fmt::format(R"("messages":{})", messages)); });
}

Json messages_of(std::string_view messages) {
  return parsed_body(fmt::format(R"("messages":{})", messages)).conversation.messages;
}

TEST(MessagesRequest, reads_every_field) {
  const ChatCompletionRequest request = parsed(
      R"("system":"Be brief.","temperature":0.5,"top_p":0.9,"top_k":5,"stop_sequences":["x"],)"
      R"("stream":true,"metadata":{},"thinking":{"type":"enabled","budget_tokens":1024},"odd":1)"
  );
  EXPECT_EQ(request.generation.model, "m");
  EXPECT_EQ(request.generation.max_tokens, 9);
  EXPECT_EQ(request.generation.sampling.temperature, 0.5);
  EXPECT_EQ(request.generation.sampling.top_p, 0.9);
  EXPECT_EQ(request.generation.sampling.top_k, 5);
  EXPECT_EQ(request.generation.stops, std::vector<std::string>{"x"});
  EXPECT_TRUE(request.generation.stream);
  EXPECT_EQ(request.template_kwargs.dump(), R"({"enable_thinking":true})");
  EXPECT_EQ(request.ignored, std::vector<std::string>{"odd"});
  EXPECT_EQ(
      request.conversation.messages,
      Json::parse(R"([{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}])")
  );
}

TEST(MessagesRequest, top_p_of_nothing_keeps_the_best_token) {
  EXPECT_NO_THROW(require_valid(apply(parsed(R"("top_p":0)").generation.sampling, {})));
}

TEST(MessagesRequest, thinking_is_off_unless_it_is_asked_for) {
  const auto thinks = [](std::string_view members) {
    return parsed(members).template_kwargs["enable_thinking"].get<bool>();
  };
  EXPECT_FALSE(thinks(R"("stream":false)"));
  EXPECT_FALSE(thinks(R"("thinking":{"type":"disabled"})"));
  EXPECT_TRUE(thinks(R"("thinking":{"type":"adaptive"})"));
  EXPECT_EQ(field_of(R"("thinking":{"type":"on"})"), "thinking.type");
  EXPECT_EQ(
      field_of(R"("thinking":{"type":"enabled","budget_tokens":0})"), "thinking.budget_tokens"
  );
}

TEST(MessagesRequest, model_and_max_tokens_are_required_but_for_a_count) {
  const std::string body = fmt::format(R"({{"model":"m",{}}})", kHello);
  EXPECT_EQ(refused_field([&] { parse_messages_request(body, {}); }), "max_tokens");
  EXPECT_EQ(refused_field([&] { parse_count_tokens_request(body, {}); }), "taken");
  EXPECT_EQ(
      refused_field([&] { parse_count_tokens_request(fmt::format("{{{}}}", kHello), {}); }), "model"
  );
}

TEST(MessagesRequest, each_number_is_taken_in_its_range_and_refused_outside) {
  const auto field_with = [](std::string_view field, std::string_view value) {
    return refused_field([&] {
      parse_count_tokens_request(
          fmt::format(R"({{"model":"m",{},"{}":{}}})", kHello, field, value), {}
      );
    });
  };
  struct Numeric {
    const char* field;
    std::vector<const char*> taken;
    std::vector<const char*> refused;
  };
  const std::vector<Numeric> fields = {
      {"max_tokens", {"1", "2147483647"}, {"0", "-1", "2147483648", "1.5"}},
      {"temperature", {"0", "1", "100"}, {"-0.1", "100.1"}},
      {"top_p", {"0", "1"}, {"-0.1", "1.1"}},
      {"top_k", {"0", "1000000000"}, {"-1", "1000000001", "0.5"}},
  };
  for (const Numeric& numeric : fields) {
    for (const char* value : numeric.taken) {
      EXPECT_EQ(field_with(numeric.field, value), "taken") << numeric.field << value;
    }
    for (const char* value : numeric.refused) {
      EXPECT_EQ(field_with(numeric.field, value), numeric.field) << value;
    }
    for (const char* value : {"9223372036854775808", "1e300", "\"1\"", "true", "[]", "{}"}) {
      EXPECT_EQ(field_with(numeric.field, value), numeric.field) << value;
    }
  }
}

TEST(MessagesRequest, a_turn_of_blocks_becomes_parts) {
  const ChatCompletionRequest request = parsed_body(
      R"("messages":[{"role":"user","content":[
        {"type":"image","source":{"type":"base64","media_type":"image/png","data":"QQ=="}},
        {"type":"text","text":"What?","cache_control":{"type":"ephemeral"}},
        {"type":"image","source":{"type":"url","url":"https://a/b.png"}}]}])"
  );
  EXPECT_EQ(request.conversation.messages, Json::parse(R"([{"role":"user","content":[
    {"type":"image_url","image_url":{"url":"data:image/png;base64,QQ=="}},
    {"type":"text","text":"What?"},
    {"type":"image_url","image_url":{"url":"https://a/b.png"}}]}])"));
  ASSERT_EQ(request.conversation.media.size(), 2U);
  EXPECT_EQ(request.conversation.media[0].param, "messages[0].content[0].source");
  EXPECT_EQ(request.conversation.media[1].param, "messages[0].content[2].source");
}

TEST(MessagesRequest, texts_alone_become_one_text) {
  EXPECT_EQ(
      messages_of(
          R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])"
      ),
      Json::parse(R"([{"role":"user","content":"ab"}])")
  );
  EXPECT_EQ(
      parsed(R"("system":[{"type":"text","text":"a"},{"type":"text","text":"b"}])")
          .conversation.messages[0],
      Json::parse(R"({"role":"system","content":"a\nb"})")
  );
}

TEST(MessagesRequest, calls_and_results_become_messages_of_their_own) {
  EXPECT_EQ(
      messages_of(R"([
        {"role":"user","content":"2+3?"},
        {"role":"assistant","content":[
          {"type":"thinking","thinking":"Hm.","signature":""},
          {"type":"text","text":"Let me see."},
          {"type":"tool_use","id":"toolu_1","name":"add","input":{"b":3,"a":2}}]},
        {"role":"user","content":[
          {"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"5"}]},
          {"type":"tool_result","tool_use_id":"toolu_2","is_error":true},
          {"type":"text","text":"And?"}]}])"),
      Json::parse(R"([
        {"role":"user","content":"2+3?"},
        {"role":"assistant","content":"Let me see.","reasoning_content":"Hm.","tool_calls":[
          {"id":"toolu_1","type":"function","function":{"name":"add","arguments":{"b":3,"a":2}}}]},
        {"role":"tool","tool_call_id":"toolu_1","content":"5"},
        {"role":"tool","tool_call_id":"toolu_2","content":""},
        {"role":"user","content":"And?"}])")
  );
  EXPECT_EQ(
      messages_of(
          R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"5"}]}])"
      )
          .size(),
      1U
  );
}

TEST(MessagesRequest, messages_are_held_to_their_shape_and_the_field_is_named) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"null", "messages"},
      {"[]", "messages"},
      {"[5]", "messages[0]"},
      {R"([{"role":"system","content":"a"}])", "messages[0].role"},
      {R"([{"role":"user"}])", "messages[0].content"},
      {R"([{"role":"user","content":5}])", "messages[0].content"},
      {R"([{"role":"user","content":["a"]}])", "messages[0].content[0]"},
      {R"([{"role":"user","content":[{"type":"document"}]}])", "messages[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"tool_use"}]}])", "messages[0].content[0].type"},
      {R"([{"role":"assistant","content":[{"type":"image"}]}])", "messages[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"text","text":5}]}])", "messages[0].content[0].text"},
      {R"([{"role":"user","content":[{"type":"image"}]}])", "messages[0].content[0].source"},
      {R"([{"role":"user","content":[{"type":"image","source":{"type":"file"}}]}])",
       "messages[0].content[0].source.type"},
      {R"([{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"QQ=="}}]}])",
       "messages[0].content[0].source.media_type"},
      {R"([{"role":"user","content":[{"type":"image","source":{"type":"base64",
        "media_type":"image/svg+xml","data":"QQ=="}}]}])",
       "messages[0].content[0].source.media_type"},
      {R"([{"role":"user","content":[{"type":"tool_result"}]}])",
       "messages[0].content[0].tool_use_id"},
      {R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"a",
        "content":[{"type":"video"}]}]}])",
       "messages[0].content[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"text","text":"a"},
        {"type":"tool_result","tool_use_id":"a"}]}])",
       "messages[0].content[1].type"},
      {R"([{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":"x"}]}])",
       "messages[0].content[0].input"},
  };
  for (const auto& [messages, field] : cases) {
    EXPECT_EQ(field_of_messages(messages), field) << messages;
  }
  EXPECT_EQ(field_of(R"("system":5)"), "system");
  EXPECT_EQ(field_of(R"("system":[{"type":"image"}])"), "system[0].type");
}

TEST(MessagesRequest, so_many_pictures_and_no_more) {
  const auto pictures = [](int count) {
    const std::string picture = R"({"type":"image","source":{"type":"url","url":"u"}})";
    std::string blocks = picture;
    for (int i = 1; i < count; ++i) {
      blocks += "," + picture;
    }
    return fmt::format(R"([{{"role":"user","content":[{}]}}])", blocks);
  };
  EXPECT_EQ(field_of_messages(pictures(16)), "taken");
  EXPECT_EQ(field_of_messages(pictures(17)), "messages[0].content[16].source");
}

TEST(MessagesRequest, tools_reach_the_template_in_its_own_form) {
  const ToolFields tools = parsed(kTools).tools;
  EXPECT_EQ(tools.choice, ToolChoice::automatic);
  EXPECT_TRUE(tools.parallel);
  EXPECT_EQ(tools.template_tools, Json::parse(R"([
    {"type":"function","function":{"name":"add","description":"Adds.","parameters":{"type":"object"}}},
    {"type":"function","function":{"name":"sub","parameters":{}}}])"));
  ASSERT_EQ(tools.tools.size(), 2U);
  EXPECT_EQ(tools.tools[0].parameters, Json::parse(R"({"type":"object"})"));
}

TEST(MessagesRequest, tool_choice_has_four_types) {
  const auto chosen = [](std::string_view choice) {
    return parsed(fmt::format(R"({},"tool_choice":{})", kTools, choice)).tools;
  };
  EXPECT_EQ(chosen(R"({"type":"auto","disable_parallel_tool_use":true})").parallel, false);
  EXPECT_EQ(chosen(R"({"type":"auto"})").choice, ToolChoice::automatic);
  EXPECT_EQ(chosen(R"({"type":"any"})").choice, ToolChoice::required);
  EXPECT_TRUE(chosen(R"({"type":"none"})").template_tools.is_null());
  const ToolFields one = chosen(R"({"type":"tool","name":"sub"})");
  EXPECT_EQ(one.choice, ToolChoice::required);
  ASSERT_EQ(one.tools.size(), 1U);
  EXPECT_EQ(one.tools[0].name, "sub");
  EXPECT_EQ(one.template_tools.size(), 2U);
}

TEST(MessagesRequest, tools_and_their_choice_are_held_to_their_shape) {
  EXPECT_EQ(field_of(R"("tools":[{"type":"web_search_20250305","name":"a"}])"), "tools[0].type");
  EXPECT_EQ(field_of(R"("tools":[{"name":"a"}])"), "tools[0].input_schema");
  EXPECT_EQ(field_of(R"("tools":[{"name":"a b","input_schema":{}}])"), "tools[0].name");
  EXPECT_EQ(
      field_of(R"("tools":[{"name":"a","input_schema":{}},{"name":"a","input_schema":{}}])"),
      "tools[1].name"
  );
  EXPECT_EQ(field_of(R"("tool_choice":{"type":"any"})"), "tool_choice");
  EXPECT_EQ(field_of(R"("tool_choice":"any")"), "tool_choice");
  EXPECT_EQ(
      field_of(fmt::format(R"({},"tool_choice":{{"type":"tool","name":"x"}})", kTools)),
      "tool_choice.name"
  );
}

TEST(MessagesRequest, an_answers_form_is_a_schema) {
  const ResponseFormat format =
      parsed(R"("output_config":{"format":{"type":"json_schema","schema":{"type":"array"}}})")
          .format;
  EXPECT_EQ(format.kind, ResponseFormat::Kind::json_schema);
  EXPECT_EQ(format.schema, Json::parse(R"({"type":"array"})"));
  EXPECT_EQ(
      parsed(R"("output_format":{"type":"json_schema","schema":{}})").format.kind,
      ResponseFormat::Kind::json_schema
  );
  EXPECT_EQ(field_of(R"("output_config":{"format":{"type":"xml"}})"), "output_config.format.type");
}

}  // namespace
}  // namespace whimbrel::wire
