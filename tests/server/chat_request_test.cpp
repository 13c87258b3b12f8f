#include "server/chat_request.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "refusal.h"

namespace whimbrel::wire {
namespace {

constexpr std::string_view kHello = R"("messages":[{"role":"user","content":"hi"}])";

ChatCompletionRequest parsed(std::string_view members) {
  return parse_chat_request(fmt::format("{{{},{}}}", kHello, members), {});
}

/// The refused field of a request with these members beside messages; "taken".
std::string field_of(std::string_view members) {
  return refused_field([&] { parsed(members); });
}

/// The same of a request with these messages.
std::string field_of_messages(std::string_view messages) {
  return refused_field([&] {
    parse_chat_request(fmt::format(R"({{"messages":{}}})", messages), {});
  });
}

std::string field_of_body(std::string_view body) {
  return refused_field([&] { parse_chat_request(body, {}); });
}

constexpr std::string_view kTools =
    R"("tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}},)"
    R"({"type":"function","function":{"name":"sub"}}])";

TEST(ChatRequest, nothing_but_messages_leaves_everything_to_the_server) {
  const ChatCompletionRequest request =
      parse_chat_request(R"({"messages":[{"role":"user","content":"hi"}]})", {});
  EXPECT_EQ(request.generation.model, "");
  EXPECT_EQ(request.generation.max_tokens, std::nullopt);
  EXPECT_EQ(request.generation.sampling.temperature, std::nullopt);
  EXPECT_EQ(request.generation.choices, 1);
  EXPECT_FALSE(request.generation.stream);
  EXPECT_FALSE(request.logprobs);
  EXPECT_EQ(request.tools.choice, ToolChoice::none);
  EXPECT_TRUE(request.tools.template_tools.is_null());
  EXPECT_EQ(request.format.kind, ResponseFormat::Kind::text);
  EXPECT_TRUE(request.ignored.empty());
}

TEST(ChatRequest, reads_every_field) {
  const ChatCompletionRequest request = parsed(
      R"("model":"m","max_tokens":5,"max_completion_tokens":7,"temperature":0.5,"top_p":0.9,)"
      R"("top_k":40,"min_p":0.1,"n":2,"seed":42,"stop":["a","b"],"presence_penalty":-1,)"
      R"("frequency_penalty":1.5,"repetition_penalty":1.1,"logit_bias":{"7":-100,"8":2.5},)"
      R"("logprobs":true,"top_logprobs":3,"stream":true,"stream_options":{"include_usage":true},)"
      R"("return_progress":true,"user":"u","metadata":{},"store":false,"service_tier":"auto",)"
      R"("chat_template_kwargs":{"tone":"dry"},"reasoning_effort":"low",)"
      R"("whimbrel":{"details":true,"image_tokens":64},"x_custom":1)"
  );
  const GenerationFields& generation = request.generation;
  EXPECT_EQ(generation.model, "m");
  EXPECT_EQ(generation.max_tokens, 7);
  EXPECT_EQ(generation.choices, 2);
  EXPECT_EQ(generation.stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(generation.stream && generation.include_usage && generation.return_progress);
  EXPECT_TRUE(generation.whimbrel.details);
  EXPECT_EQ(generation.whimbrel.media.image_tokens, 64);
  const SamplingOptions sampling = apply(generation.sampling, {.top_k = 3});
  EXPECT_EQ(sampling.temperature, 0.5);
  EXPECT_EQ(sampling.top_k, 40);
  EXPECT_EQ(sampling.top_p, 0.9);
  EXPECT_EQ(sampling.min_p, 0.1);
  EXPECT_EQ(sampling.repetition_penalty, 1.1);
  EXPECT_EQ(sampling.presence_penalty, -1);
  EXPECT_EQ(sampling.frequency_penalty, 1.5);
  EXPECT_EQ(sampling.seed, 42U);
  EXPECT_EQ(sampling.logit_bias, (std::vector<std::pair<int32_t, float>>{{7, -100}, {8, 2.5F}}));
  EXPECT_TRUE(request.logprobs);
  EXPECT_EQ(request.top_logprobs, 3);
  EXPECT_EQ(
      request.template_kwargs,
      Json::parse(R"({"tone":"dry","enable_thinking":true,"reasoning_effort":"low"})")
  );
  EXPECT_EQ(request.ignored, std::vector<std::string>{"x_custom"});
}

TEST(ChatRequest, overrides_leave_the_other_defaults_alone) {
  const SamplingOptions defaults = {.temperature = 0.7, .top_k = 20, .top_p = 0.8};
  const SamplingOptions options = apply({.temperature = 0}, defaults);
  EXPECT_EQ(options.temperature, 0);
  EXPECT_EQ(options.top_k, 20);
  EXPECT_EQ(options.top_p, 0.8);
  EXPECT_EQ(options.seed, std::nullopt);
}

// F17: the extremes of each numeric field, and what is no number.
struct Numeric {
  const char* field;
  const char* beside;                // what the field needs
  std::vector<const char*> taken;    // least and most among them
  std::vector<const char*> refused;  // least - 1 and most + 1 among them
};

const std::vector<Numeric> kNumeric = {
    {"max_tokens", "", {"-1", "1", "2147483647"}, {"-2", "0", "2147483648", "1.5"}},
    {"max_completion_tokens", "", {"-1", "1", "2147483647"}, {"-2", "0", "2147483648", "1.0"}},
    {"temperature", "", {"0", "0.0", "2", "100"}, {"-0.001", "100.001", "-1"}},
    {"top_p", "", {"0", "1e-9", "1"}, {"-1e-9", "1.000001"}},
    {"top_k", "", {"-1", "0", "1", "1000000000"}, {"-2", "1000000001", "0.5"}},
    {"min_p", "", {"0", "1"}, {"-0.1", "1.1"}},
    {"repetition_penalty", "", {"0.01", "100"}, {"0", "0.0099", "100.1"}},
    {"repeat_penalty", "", {"0.01", "100"}, {"0", "0.0099", "100.1"}},
    {"presence_penalty", "", {"-2", "2"}, {"-2.001", "2.001"}},
    {"frequency_penalty", "", {"-2", "2"}, {"-2.001", "2.001"}},
    {"n", "", {"1", "8"}, {"0", "9", "-1", "1.5"}},
    {"seed", "", {"-9223372036854775808", "-1", "0", "9223372036854775807"}, {"0.5"}},
    {"top_logprobs", R"("logprobs":true,)", {"0", "20"}, {"-1", "21", "0.5"}},
};

TEST(ChatRequest, each_number_is_taken_in_its_range_and_refused_outside) {
  for (const Numeric& numeric : kNumeric) {
    const auto field = [&](std::string_view value) {
      return field_of(fmt::format(R"({}"{}":{})", numeric.beside, numeric.field, value));
    };
    for (const char* value : numeric.taken) {
      EXPECT_EQ(field(value), "taken") << numeric.field << value;
    }
    EXPECT_EQ(field("null"), "taken") << numeric.field;
    std::vector<const char*> refused = numeric.refused;
    refused.insert(
        refused.end(),
        {"9223372036854775808", "18446744073709551616", "1e300", "\"1\"", "true", "[]", "{}", "[1]"}
    );
    for (const char* value : refused) {
      EXPECT_EQ(field(value), numeric.field) << value;
    }
  }
}

TEST(ChatRequest, each_boolean_and_text_is_held_to_its_type) {
  for (const char* field : {"stream", "logprobs", "parallel_tool_calls", "return_progress"}) {
    EXPECT_EQ(field_of(fmt::format(R"("{}":false)", field)), "taken") << field;
    EXPECT_EQ(field_of(fmt::format(R"("{}":null)", field)), "taken") << field;
    for (const char* value : {"0", "1", "\"true\"", "[]", "{}"}) {
      EXPECT_EQ(field_of(fmt::format(R"("{}":{})", field, value)), field) << value;
    }
  }
  for (const char* value : {"1", "true", "[]", "{}"}) {
    EXPECT_EQ(field_of(fmt::format(R"("model":{})", value)), "model") << value;
    EXPECT_EQ(field_of(fmt::format(R"("reasoning_effort":{})", value)), "reasoning_effort");
  }
  EXPECT_EQ(field_of(R"("reasoning_effort":"extreme")"), "reasoning_effort");
  EXPECT_EQ(field_of(R"("stream_options":true)"), "stream_options");
  EXPECT_EQ(field_of(R"("stream_options":{"include_usage":1})"), "stream_options.include_usage");
}

TEST(ChatRequest, two_names_of_a_field_may_not_contradict) {
  EXPECT_EQ(field_of(R"("repetition_penalty":1.1,"repeat_penalty":1.1)"), "taken");
  EXPECT_EQ(field_of(R"("repetition_penalty":1.1,"repeat_penalty":1.2)"), "repeat_penalty");
}

TEST(ChatRequest, minus_one_asks_for_no_seed_and_for_the_whole_context) {
  EXPECT_EQ(parsed(R"("seed":-1)").generation.sampling.seed, std::nullopt);
  EXPECT_EQ(parsed(R"("seed":-2)").generation.sampling.seed, UINT64_MAX - 1);
  EXPECT_EQ(parsed(R"("max_tokens":-1)").generation.max_tokens, std::nullopt);
  EXPECT_EQ(
      parsed(R"("max_tokens":5,"max_completion_tokens":-1)").generation.max_tokens, std::nullopt
  );
}

TEST(ChatRequest, top_p_of_nothing_keeps_the_best_token) {
  const SamplingOptions options = apply(parsed(R"("top_p":0)").generation.sampling, {});
  EXPECT_NO_THROW(require_valid(options));
  EXPECT_LT(options.top_p, 1e-6);
}

TEST(ChatRequest, top_logprobs_need_logprobs) {
  EXPECT_EQ(field_of(R"("top_logprobs":2)"), "top_logprobs");
  EXPECT_EQ(field_of(R"("top_logprobs":2,"logprobs":false)"), "top_logprobs");
  EXPECT_EQ(field_of(R"("top_logprobs":0)"), "taken");
}

// F18: an empty stop text would end every answer.
TEST(ChatRequest, stop_is_a_text_or_a_list_inside_its_bounds) {
  EXPECT_EQ(parsed(R"("stop":"END")").generation.stops, std::vector<std::string>{"END"});
  EXPECT_TRUE(parsed(R"("stop":null)").generation.stops.empty());
  EXPECT_TRUE(parsed(R"("stop":[])").generation.stops.empty());
  EXPECT_EQ(field_of(R"("stop":"")"), "stop");
  EXPECT_EQ(field_of(R"("stop":["a",""])"), "stop[1]");
  EXPECT_EQ(field_of(R"("stop":["a",null])"), "stop[1]");
  EXPECT_EQ(field_of(R"("stop":["a",5])"), "stop[1]");
  EXPECT_EQ(field_of(R"("stop":5)"), "stop");
  EXPECT_EQ(field_of(R"("stop":{})"), "stop");
  const auto list = [](int count) {
    std::string texts = "\"x\"";
    for (int i = 1; i < count; ++i) {
      texts += ",\"x\"";
    }
    return fmt::format(R"("stop":[{}])", texts);
  };
  EXPECT_EQ(field_of(list(16)), "taken");
  EXPECT_EQ(field_of(list(17)), "stop");
  EXPECT_EQ(field_of(fmt::format(R"("stop":"{}")", std::string(256, 'a'))), "taken");
  EXPECT_EQ(field_of(fmt::format(R"("stop":["{}"])", std::string(257, 'a'))), "stop[0]");
}

// F19: biases on ids that are none.
TEST(ChatRequest, logit_bias_is_parsed_strictly) {
  for (const char* key : {
           "", "-1", "+1", "01", "1.0", "0x1", " 1", "1 ", "a", "2147483648", "99999999999999999999"
       }) {
    EXPECT_EQ(field_of(fmt::format(R"("logit_bias":{{"{}":1}})", key)), "logit_bias") << key;
  }
  for (const char* bias : {"-100.1", "100.1", "\"1\"", "null", "true", "[]", "1e300"}) {
    EXPECT_EQ(field_of(fmt::format(R"("logit_bias":{{"5":{}}})", bias)), "logit_bias.5") << bias;
  }
  EXPECT_EQ(field_of(R"("logit_bias":{"2147483647":100,"0":-100})"), "taken");
  EXPECT_EQ(field_of(R"("logit_bias":[[1,2]])"), "logit_bias");
  const auto biases = [](int count) {
    std::string members = R"("0":1)";
    for (int i = 1; i < count; ++i) {
      members += fmt::format(R"(,"{}":1)", i);
    }
    return fmt::format(R"("logit_bias":{{{}}})", members);
  };
  EXPECT_EQ(field_of(biases(1024)), "taken");
  EXPECT_EQ(field_of(biases(1025)), "logit_bias");
}

// F13: bodies that are no JSON, or that would cost too much.
TEST(ChatRequest, a_body_that_is_no_json_is_refused) {
  const std::vector<std::string> bodies = {
      "",
      "null",
      "[]",
      "\"text\"",
      "{",
      R"({"messages":[],})",
      R"({"messages":NaN})",
      R"({"temperature":1e400})",
      R"({"temperature":1e999,"messages":[]})",
      R"({"temperature":Infinity})",
      "{\"model\":\"\xff\xfe\"}",
      R"({"model":"\ud800"})",
      R"({"model":"\udc00\ud800"})",
      std::string("{\"model\":\"a\0b\"}", 15),
      R"({"model":"a","model":"b","messages":[{"role":"user","content":"hi"}]})",
      std::string(100'000, '['),
      "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
      R"({"messages":"unterminated)" + std::string(1 << 20, 'x'),
  };
  for (const std::string& body : bodies) {
    EXPECT_EQ(field_of_body(body), "") << body.substr(0, 60);
  }
}

TEST(ChatRequest, depth_values_and_members_of_a_body_are_bounded) {
  const auto nested = [](size_t levels) {
    return R"({"messages":[{"role":"user","content":"hi"}],"x":)" + std::string(levels, '[') +
           std::string(levels, ']') + "}";
  };
  EXPECT_EQ(field_of_body(nested(63)), "taken");
  EXPECT_EQ(field_of_body(nested(64)), "");
  std::string zeros = "0";
  for (int i = 0; i < 250'000; ++i) {
    zeros += ",0";
  }
  EXPECT_EQ(field_of_body("{\"x\":[" + zeros + "]}"), "");
}

// F13: an object keeps its order in a list, so a body of 5 M keys would take time in their square.
TEST(ChatRequest, an_object_of_very_many_keys_is_refused_before_it_is_parsed) {
  const auto object = [](int count) {
    std::string members = R"("k0":":{[,")";
    for (int i = 1; i < count; ++i) {
      members += fmt::format(R"(,"k{}":"\"{{")", i);
    }
    return fmt::format(R"({{{},"x":{{{}}}}})", kHello, members);
  };
  EXPECT_EQ(field_of_body(object(4096)), "taken");
  EXPECT_EQ(field_of_body(object(4097)), "");
  EXPECT_EQ(field_of_body(object(1'000'000)), "");
}

TEST(ChatRequest, messages_are_held_to_their_shape_and_the_field_is_named) {
  EXPECT_EQ(field_of_body("{}"), "messages");
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"null", "messages"},
      {"[]", "messages"},
      {"{}", "messages"},
      {"5", "messages"},
      {"[5]", "messages[0]"},
      {"[{}]", "messages[0].role"},
      {R"([{"role":5,"content":""}])", "messages[0].role"},
      {R"([{"role":"function","content":""}])", "messages[0].role"},
      {R"([{"role":"user"}])", "messages[0].content"},
      {R"([{"role":"user","content":null}])", "messages[0].content"},
      {R"([{"role":"user","content":5}])", "messages[0].content"},
      {R"([{"role":"user","content":{}}])", "messages[0].content"},
      {R"([{"role":"assistant","content":null}])", "messages[0].content"},
      {R"([{"role":"assistant","tool_calls":[]}])", "messages[0].content"},
      {R"([{"role":"user","content":["a"]}])", "messages[0].content[0]"},
      {R"([{"role":"user","content":[{}]}])", "messages[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"audio"}]}])", "messages[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text"},
      {R"([{"role":"user","content":[{"type":"text","text":1}]}])", "messages[0].content[0].text"},
      {R"([{"role":"user","content":"a"},{"role":"user","content":[{"type":"image_url"}]}])",
       "messages[1].content[0].image_url"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":7}]}])",
       "messages[0].content[0].image_url"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{}}]}])",
       "messages[0].content[0].image_url.url"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"u","detail":"x"}}]}])",
       "messages[0].content[0].image_url.detail"},
      {R"([{"role":"user","content":[{"type":"video","video":"f.mp4"}]}])",
       "messages[0].content[0].video"},
      {R"([{"role":"user","content":[{"type":"video","video":["a",1]}]}])",
       "messages[0].content[0].video[1]"},
      {R"([{"role":"user","content":[{"type":"video","video":["a"],"fps":0}]}])",
       "messages[0].content[0].fps"},
      {R"([{"role":"tool","content":"a","tool_call_id":5}])", "messages[0].tool_call_id"},
      {R"([{"role":"assistant","tool_calls":{}}])", "messages[0].tool_calls"},
      {R"([{"role":"assistant","tool_calls":[{}]}])", "messages[0].tool_calls[0].function"},
      {R"([{"role":"assistant","tool_calls":[{"function":{}}]}])",
       "messages[0].tool_calls[0].function.name"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":[]}}]}])",
       "messages[0].tool_calls[0].function.arguments"},
      {R"([{"role":"system","content":"a"},{"role":"developer","content":""}])", "taken"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}])", "taken"},
  };
  for (const auto& [messages, field] : cases) {
    EXPECT_EQ(field_of_messages(messages), field) << messages;
  }
}

TEST(ChatRequest, so_many_messages_and_no_more) {
  const auto messages = [](int count) {
    std::string list = R"([{"role":"user","content":"a"})";
    for (int i = 1; i < count; ++i) {
      list += R"(,{"role":"user","content":"a"})";
    }
    return list + "]";
  };
  EXPECT_EQ(field_of_messages(messages(4096)), "taken");
  EXPECT_EQ(field_of_messages(messages(4097)), "messages");
}

TEST(ChatRequest, lists_media_as_the_reader_meets_them) {
  const ChatCompletionRequest request = parse_chat_request(
      R"({"messages":[{"role":"user","content":[
        {"type":"image_url","image_url":{"url":"data:a","detail":"low"}},
        {"type":"text","text":"and"},
        {"type":"image_url","image_url":"data:b"},
        {"type":"input_image","image_url":"data:c","detail":"high"}]},
        {"role":"tool","content":[{"type":"video_url","video_url":{"url":"data:d"}}]}]})",
      {}
  );
  const std::vector<MediaPart>& media = request.conversation.media;
  ASSERT_EQ(media.size(), 4U);
  EXPECT_EQ(media[0].param, "messages[0].content[0].image_url");
  EXPECT_EQ(media[0].detail, ImageDetail::low);
  EXPECT_EQ(media[1].param, "messages[0].content[2].image_url");
  EXPECT_EQ(media[1].detail, ImageDetail::automatic);
  EXPECT_EQ(media[2].detail, ImageDetail::high);
  EXPECT_EQ(media[3].kind, MediaKind::video);
  EXPECT_EQ(media[3].param, "messages[1].content[0].video_url");
}

TEST(ChatRequest, a_list_of_texts_becomes_one_text) {
  const auto content = [](std::string_view parts) {
    return parse_chat_request(
               fmt::format(R"({{"messages":[{{"role":"user","content":{}}}]}})", parts), {}
    )
        .conversation.messages[0]["content"];
  };
  EXPECT_EQ(content(R"([{"type":"text","text":"a"},{"type":"input_text","text":"b"}])"), "ab");
  EXPECT_EQ(content("[]"), "");
  const Json mixed =
      content(R"([{"type":"text","text":"a"},{"type":"image_url","image_url":"data:b"}])");
  EXPECT_EQ(mixed.size(), 2U);
}

TEST(ChatRequest, so_many_pictures_and_no_more) {
  const auto pictures = [](int count) {
    std::string parts = R"({"type":"image_url","image_url":"data:a"})";
    for (int i = 1; i < count; ++i) {
      parts += R"(,{"type":"image_url","image_url":"data:a"})";
    }
    return fmt::format(R"([{{"role":"user","content":[{}]}}])", parts);
  };
  EXPECT_EQ(field_of_messages(pictures(16)), "taken");
  EXPECT_EQ(field_of_messages(pictures(17)), "messages[0].content[16].image_url");
  EXPECT_EQ(
      field_of_messages(
          R"([{"role":"user","content":[{"type":"video_url","video_url":"a"},)"
          R"({"type":"video_url","video_url":"b"}]}])"
      ),
      "messages[0].content[1].video_url"
  );
}

TEST(ChatRequest, arguments_of_calls_become_objects_where_they_are) {
  const auto arguments = [](std::string_view text) {
    const ChatCompletionRequest request = parse_chat_request(
        fmt::format(
            R"({{"messages":[{{"role":"assistant","content":null,"tool_calls":[{{"id":"1",)"
            R"("type":"function","function":{{"name":"f","arguments":{}}}}}]}}]}})",
            text
        ),
        {}
    );
    return request.conversation.messages[0]["tool_calls"][0]["function"]["arguments"].dump();
  };
  EXPECT_EQ(arguments(R"("{\"b\":1,\"a\":[2.50]}")"), R"({"b":1,"a":[2.5]})");
  EXPECT_EQ(arguments(R"({"b":1})"), R"({"b":1})");
  EXPECT_EQ(arguments(R"("")"), "{}");
  EXPECT_EQ(arguments(R"("not json")"), R"("not json")");
  EXPECT_EQ(arguments(R"("[1]")"), R"("[1]")");
}

TEST(ChatRequest, tools_are_kept_for_template_and_grammar) {
  const ToolFields tools = parsed(kTools).tools;
  EXPECT_EQ(tools.choice, ToolChoice::automatic);
  ASSERT_EQ(tools.tools.size(), 2U);
  EXPECT_EQ(tools.tools[0].name, "add");
  EXPECT_EQ(tools.tools[0].parameters, Json::parse(R"({"type":"object"})"));
  EXPECT_TRUE(tools.tools[1].parameters.is_null());
  EXPECT_EQ(tools.template_tools.size(), 2U);
  EXPECT_TRUE(tools.parallel);
}

TEST(ChatRequest, tool_choice_none_hides_the_tools) {
  const ToolFields tools = parsed(fmt::format(R"({},"tool_choice":"none")", kTools)).tools;
  EXPECT_EQ(tools.choice, ToolChoice::none);
  EXPECT_TRUE(tools.tools.empty());
  EXPECT_TRUE(tools.template_tools.is_null());
  EXPECT_EQ(parsed(R"("tools":[],"tool_choice":"auto")").tools.choice, ToolChoice::none);
}

TEST(ChatRequest, tool_choice_by_name_leaves_one_to_call) {
  const ToolFields tools =
      parsed(
          fmt::format(
              R"({},"tool_choice":{{"type":"function","function":{{"name":"sub"}}}})", kTools
          )
      )
          .tools;
  EXPECT_EQ(tools.choice, ToolChoice::required);
  ASSERT_EQ(tools.tools.size(), 1U);
  EXPECT_EQ(tools.tools[0].name, "sub");
  EXPECT_EQ(tools.template_tools.size(), 2U);
}

TEST(ChatRequest, tools_and_their_choice_are_held_to_their_shape) {
  const auto with_choice = [](std::string_view choice) {
    return field_of(fmt::format(R"({},"tool_choice":{})", kTools, choice));
  };
  EXPECT_EQ(with_choice(R"("required")"), "taken");
  EXPECT_EQ(with_choice(R"("any")"), "tool_choice");
  EXPECT_EQ(with_choice("5"), "tool_choice");
  EXPECT_EQ(with_choice(R"({"type":"custom"})"), "tool_choice.type");
  EXPECT_EQ(with_choice(R"({"type":"function"})"), "tool_choice.function");
  EXPECT_EQ(
      with_choice(R"({"type":"function","function":{"name":"mul"}})"), "tool_choice.function.name"
  );
  EXPECT_EQ(field_of(R"("tool_choice":"required")"), "tool_choice");
  EXPECT_EQ(field_of(R"("tools":{})"), "tools");
  EXPECT_EQ(field_of(R"("tools":[5])"), "tools[0]");
  EXPECT_EQ(field_of(R"("tools":[{"type":"custom"}])"), "tools[0].type");
  EXPECT_EQ(field_of(R"("tools":[{"type":"function"}])"), "tools[0].function");
  const auto named = [](std::string_view name) {
    return field_of(
        fmt::format(R"("tools":[{{"type":"function","function":{{"name":{}}}}}])", name)
    );
  };
  EXPECT_EQ(named("\"" + std::string(64, 'a') + "\""), "taken");
  for (const std::string& name :
       {std::string(65, 'a'),
        std::string(),
        std::string("a b"),
        std::string("ä"),
        std::string("a\\n")}) {
    EXPECT_EQ(named("\"" + name + "\""), "tools[0].function.name") << name;
  }
  EXPECT_EQ(
      field_of(
          R"("tools":[{"type":"function","function":{"name":"a"}},)"
          R"({"type":"function","function":{"name":"a"}}])"
      ),
      "tools[1].function.name"
  );
  EXPECT_EQ(
      field_of(R"("tools":[{"type":"function","function":{"name":"a","parameters":[]}}])"),
      "tools[0].function.parameters"
  );
}

TEST(ChatRequest, so_many_tools_and_no_more) {
  const auto tools = [](int count) {
    std::string list = R"({"type":"function","function":{"name":"t0"}})";
    for (int i = 1; i < count; ++i) {
      list += fmt::format(R"(,{{"type":"function","function":{{"name":"t{}"}}}})", i);
    }
    return fmt::format(R"("tools":[{}])", list);
  };
  EXPECT_EQ(field_of(tools(128)), "taken");
  EXPECT_EQ(field_of(tools(129)), "tools");
}

TEST(ChatRequest, reads_each_form_of_an_answer) {
  const auto format = [](std::string_view value) {
    return parsed(fmt::format(R"("response_format":{})", value)).format;
  };
  EXPECT_EQ(format(R"({"type":"text"})").kind, ResponseFormat::Kind::text);
  EXPECT_EQ(format(R"({"type":"json_object"})").kind, ResponseFormat::Kind::json_object);
  const ResponseFormat with_schema = format(R"({"type":"json_object","schema":{"type":"object"}})");
  EXPECT_EQ(with_schema.kind, ResponseFormat::Kind::json_schema);
  EXPECT_EQ(with_schema.schema, Json::parse(R"({"type":"object"})"));
  const ResponseFormat schema = format(
      R"({"type":"json_schema","json_schema":{"name":"p","strict":true,"schema":{"type":"array"}}})"
  );
  EXPECT_EQ(schema.kind, ResponseFormat::Kind::json_schema);
  EXPECT_EQ(schema.schema, Json::parse(R"({"type":"array"})"));
}

TEST(ChatRequest, a_form_of_an_answer_is_held_to_its_shape) {
  const auto field = [](std::string_view value) {
    return field_of(fmt::format(R"("response_format":{})", value));
  };
  EXPECT_EQ(field("\"json_object\""), "response_format");
  EXPECT_EQ(field("{}"), "response_format.type");
  EXPECT_EQ(field(R"({"type":"xml"})"), "response_format.type");
  EXPECT_EQ(field(R"({"type":"json_schema"})"), "response_format.json_schema");
  EXPECT_EQ(
      field(R"({"type":"json_schema","json_schema":{"name":"a"}})"),
      "response_format.json_schema.schema"
  );
  EXPECT_EQ(
      field(R"({"type":"json_schema","json_schema":{"name":"a b","schema":{}}})"),
      "response_format.json_schema.name"
  );
  EXPECT_EQ(
      field(R"({"type":"json_schema","json_schema":{"strict":"yes","schema":{}}})"),
      "response_format.json_schema.strict"
  );
  EXPECT_EQ(
      field_of(fmt::format(R"({},"response_format":{{"type":"json_object"}})", kTools)),
      "response_format"
  );
  EXPECT_EQ(
      field_of(
          fmt::format(
              R"({},"tool_choice":"none","response_format":{{"type":"json_object"}})", kTools
          )
      ),
      "taken"
  );
}

TEST(ChatRequest, template_variables_may_not_name_internals) {
  for (const char* name : {"messages", "tools", "tokenize", "add_generation_prompt", "bos_token"}) {
    EXPECT_EQ(
        field_of(fmt::format(R"("chat_template_kwargs":{{"{}":1}})", name)),
        std::string("chat_template_kwargs.") + name
    );
  }
  EXPECT_EQ(field_of(R"("chat_template_kwargs":[])"), "chat_template_kwargs");
  EXPECT_EQ(
      parsed(R"("chat_template_kwargs":{"enable_thinking":true},"reasoning_effort":"none")")
          .template_kwargs["enable_thinking"],
      true
  );
  EXPECT_EQ(parsed(R"("reasoning_effort":"none")").template_kwargs["enable_thinking"], false);
}

TEST(ChatRequest, refuses_what_would_make_another_answer) {
  EXPECT_EQ(field_of(R"("functions":[])"), "functions");
  EXPECT_EQ(field_of(R"("function_call":"auto")"), "function_call");
  EXPECT_EQ(field_of(R"("audio":{})"), "audio");
  EXPECT_EQ(field_of(R"("modalities":["text","audio"])"), "modalities");
  EXPECT_EQ(field_of(R"("modalities":["text"],"functions":null)"), "taken");
}

TEST(ChatRequest, our_own_fields_are_held_to_their_list) {
  EXPECT_EQ(field_of(R"("whimbrel":{"detail":true})"), "whimbrel");
  EXPECT_EQ(field_of(R"("whimbrel":true)"), "whimbrel");
  EXPECT_EQ(field_of(R"("whimbrel":{"fps":0})"), "whimbrel.fps");
  EXPECT_EQ(field_of(R"("whimbrel":{"max_pixels":0})"), "whimbrel.max_pixels");
}

TEST(ChatRequest, apply_template_reads_only_what_makes_a_prompt) {
  const ChatCompletionRequest request =
      parse_template_request(fmt::format(R"({{{},"temperature":"hot"}})", kHello), {});
  EXPECT_EQ(request.conversation.messages.size(), 1U);
  EXPECT_EQ(request.ignored, std::vector<std::string>{"temperature"});
}

}  // namespace
}  // namespace whimbrel::wire
