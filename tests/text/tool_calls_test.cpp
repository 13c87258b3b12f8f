#include "text/tool_calls.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/text/stream_cuts.h"
#include "text/parameter_value.h"

namespace whimbrel {
namespace {

using Kind = ToolEvent::Kind;

std::vector<Tool> tools() {
  return {
      {.name = "weather", .parameters = Json::parse(R"({
         "type": "object",
         "properties": {
           "city": {"type": "string"},
           "days": {"type": "integer"},
           "exact": {"type": "boolean"},
           "where": {"type": "object"},
           "note": {"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "integer"}]},
           "unit": {"enum": ["c", "f"]},
           "tags": {"$ref": "#/$defs/tags"},
           "loop": {"$ref": "#/$defs/loop"}
         },
         "$defs": {
           "tags": {"type": ["array", "null"]},
           "loop": {"anyOf": [{"$ref": "#/$defs/loop"}, {"$ref": "#/$defs/loop"}]}
         }
       })")},
      {.name = "now"},
  };
}

/// Neighbours of one kind and call put together.
std::vector<ToolEvent> joined(std::vector<ToolEvent> events) {
  std::vector<ToolEvent> all;
  for (ToolEvent& event : events) {
    const bool is_piece = event.kind == Kind::text || event.kind == Kind::arguments;
    if (is_piece && !all.empty() && all.back().kind == event.kind) {
      all.back().text += event.text;
    } else {
      all.push_back(std::move(event));
    }
  }
  return all;
}

std::vector<ToolEvent> events_of(ToolFormat format, const std::vector<std::string>& pieces) {
  ToolCallStream stream(format, tools());
  std::vector<ToolEvent> events;
  for (const std::string& piece : pieces) {
    std::ranges::move(stream.push(piece), std::back_inserter(events));
  }
  std::ranges::move(stream.finish(), std::back_inserter(events));
  return joined(std::move(events));
}

/// One line an event, as the tests below expect them.
std::string written(const std::vector<ToolEvent>& events) {
  constexpr const char* kNames[] = {"text", "begun", "arguments", "ended", "broken"};
  std::string lines;
  for (const ToolEvent& event : events) {
    const std::string index = event.kind == Kind::text ? "" : " " + std::to_string(event.index);
    const std::string text = Json(event.text).dump();
    lines += kNames[static_cast<int>(event.kind)] + index;
    lines += (event.kind == Kind::call_ended ? "" : " " + text) + "\n";
  }
  return lines;
}

struct Case {
  std::string answer;
  std::string events;
};

void expect_events(ToolFormat format, const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    for_each_cut(one.answer, [&](const std::vector<std::string>& pieces) {
      ASSERT_EQ(written(events_of(format, pieces)), one.events)
          << one.answer << "\nin " << pieces.size();
    });
  }
}

constexpr const char* kHermes =
    "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": "
    "\"a}</tool_call>\\\"{\"}}\n</tool_call>";

TEST(ToolCallStream, reads_calls_in_hermes_json) {
  const std::string first =
      "begun 0 \"weather\"\narguments 0 "
      "\"{\\\"city\\\": \\\"a}</tool_call>\\\\\\\"{\\\"}\"\nended 0\n";
  expect_events(
      ToolFormat::hermes,
      {
          {kHermes, first},
          {std::string("Let me look.\n\n") + kHermes + "\n", "text \"Let me look.\"\n" + first},
          {std::string(kHermes) + "\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n"
                                  "</tool_call> so",
           first + "begun 1 \"now\"\narguments 1 \"{}\"\nended 1\ntext \"so\"\n"},
          {"<tool_call>{\"arguments\":{\"a\":[1,-2.5e+3,true,null,\"\\u00e9\"]},"
           "\"name\":\"n\\u00e9\"}</tool_call>",
           "begun 0 \"n\xC3\xA9\"\narguments 0 "
           "\"{\\\"a\\\":[1,-2.5e+3,true,null,\\\"\\\\u00e9\\\"]}\"\nended 0\n"},
          {"<tool_call> { \"name\" : \"now\" } </tool_call>",
           "begun 0 \"now\"\narguments 0 \"{}\"\nended 0\n"},
      }
  );
}

TEST(ToolCallStream, returns_as_text_what_is_no_call) {
  expect_events(
      ToolFormat::hermes,
      {
          {"", ""},
          {"  plain \n", "text \"  plain \\n\"\n"},
          {"a <tool_c", "text \"a <tool_c\"\n"},
          {"a <<tool_call", "text \"a <<tool_call\"\n"},
          {" <tool_call>", "text \" <tool_call>\"\n"},
          {"the <tool_call> tag", "text \"the <tool_call> tag\"\n"},
          {"</tool_call>", "text \"</tool_call>\"\n"},
          {"<tool_call>{\"nam", "text \"<tool_call>{\\\"nam\"\n"},
          {"<tool_call>{\"name\": 1}</tool_call>",
           "text \"<tool_call>{\\\"name\\\": 1}</tool_call>\"\n"},
          {"<tool_call>{\"name\": \"\"}x", "text \"<tool_call>{\\\"name\\\": \\\"\\\"}x\"\n"},
          {"<tool_call>{\"arguments\": {}} x", "text \"<tool_call>{\\\"arguments\\\": {}} x\"\n"},
          {"<tool_call>{\"arguments\": {}}</tool_call>",
           "text \"<tool_call>{\\\"arguments\\\": {}}</tool_call>\"\n"},
          {"<tool_call>{\"id\": 1, \"name\": \"f\"}",
           "text \"<tool_call>{\\\"id\\\": 1, \\\"name\\\": \\\"f\\\"}\"\n"},
          {"<tool_call>\n <tool_call>{\"name\":\"now\"}</tool_call>",
           "text \"<tool_call>\"\nbegun 0 \"now\"\narguments 0 \"{}\"\nended 0\n"},
      }
  );
}

TEST(ToolCallStream, says_which_call_broke_and_keeps_all_of_it) {
  expect_events(
      ToolFormat::hermes,
      {
          {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1",
           "begun 0 \"f\"\narguments 0 \"{\\\"a\\\": 1\"\nbroken 0 "
           "\"<tool_call>{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": {\\\"a\\\": 1\"\n"},
          {"<tool_call>{\"name\": \"f\", \"arguments\": {]}</tool_call>so",
           "begun 0 \"f\"\narguments 0 \"{\"\nbroken 0 "
           "\"<tool_call>{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": {]}</tool_call>\"\n"
           "text \"so\"\n"},
          {"<tool_call>{\"name\": \"f\"</tool_call>so",
           "begun 0 \"f\"\nbroken 0 \"<tool_call>{\\\"name\\\": \\\"f\\\"</tool_call>\"\n"
           "text \"so\"\n"},
          {"<tool_call>{\"name\": \"f\"}</tool<</tool_call>"
           "<tool_call>{\"name\":\"now\"}</tool_call>",
           "begun 0 \"f\"\narguments 0 \"{}\"\nbroken 0 "
           "\"<tool_call>{\\\"name\\\": \\\"f\\\"}</tool<</tool_call>\"\n"
           "begun 1 \"now\"\narguments 1 \"{}\"\nended 1\n"},
          {"<tool_call>{\"name\": \"f\", \"name\": \"g\"}",
           "begun 0 \"f\"\nbroken 0 "
           "\"<tool_call>{\\\"name\\\": \\\"f\\\", \\\"name\\\": \\\"g\\\"}\"\n"},
      }
  );
}

std::string xml(const std::string& parameters) {
  return "<tool_call>\n<function=weather>\n" + parameters + "</function>\n</tool_call>";
}

std::string parameter(const std::string& key, const std::string& value) {
  return "<parameter=" + key + ">\n" + value + "\n</parameter>\n";
}

TEST(ToolCallStream, turns_xml_into_json) {
  const std::string city = "a\n\n\"b\" </param\t<parameter=x>\xC3\xA9";
  const std::string answer = "Hm.\n" + xml(parameter("city", city) + parameter("days", "3")) +
                             "\n" + "<tool_call><function=now></function></tool_call>";
  std::string whole = "{\"city\": " + Json(city).dump() + ", \"days\": 3}";
  // Only what must be escaped is.
  whole.replace(whole.find("\\t"), 2, "\\u0009");
  expect_events(
      ToolFormat::xml,
      {{answer,
        "text \"Hm.\"\nbegun 0 \"weather\"\narguments 0 " + Json(whole).dump() +
            "\nended 0\nbegun 1 \"now\"\narguments 1 \"{}\"\nended 1\n"},
       {xml(""), "begun 0 \"weather\"\narguments 0 \"{}\"\nended 0\n"}}
  );
}

/// What a value of a parameter becomes.
std::string json_of(const std::string& key, const std::string& value) {
  const std::vector<ToolEvent> events =
      events_of(ToolFormat::xml, {xml("<parameter=" + key + ">" + value + "</parameter>")});
  const std::string& arguments = events.at(1).text;
  const std::string begin = "{\"" + key + "\": ";
  EXPECT_TRUE(arguments.starts_with(begin) && arguments.ends_with("}")) << arguments;
  EXPECT_TRUE(Json::accept(arguments)) << arguments;
  return arguments.substr(begin.size(), arguments.size() - begin.size() - 1);
}

TEST(ToolCallStream, takes_xml_values_as_the_schema_says) {
  EXPECT_EQ(json_of("city", "\n12\n"), R"("12")");
  EXPECT_EQ(json_of("city", "\n\n12\n\n"), R"("\n12\n")");
  EXPECT_EQ(json_of("city", ""), R"("")");
  EXPECT_EQ(json_of("city", "\n\n"), R"("")");
  EXPECT_EQ(json_of("unknown", "\ntrue\n"), R"("true")");
  EXPECT_EQ(json_of("unit", "\nc\n"), R"("c")");
  EXPECT_EQ(json_of("days", "\n -3.50 \n"), "-3.50");
  EXPECT_EQ(json_of("days", "\nthree\n"), R"("three")");
  EXPECT_EQ(json_of("days", "\n[3]\n"), R"("[3]")");
  EXPECT_EQ(json_of("exact", "\ntrue\n"), "true");
  EXPECT_EQ(json_of("exact", "\nFalse\n"), "false");
  EXPECT_EQ(json_of("where", "\n{\"a\": [1]}\n"), R"({"a": [1]})");
  EXPECT_EQ(json_of("where", "\n{'a': 1}\n"), R"("{'a': 1}")");
  EXPECT_EQ(json_of("note", "\nNone\n"), "null");
  EXPECT_EQ(json_of("note", "\nsome\n"), R"("some")");
  EXPECT_EQ(json_of("note", "\n7\n"), "7");
  EXPECT_EQ(json_of("tags", "\n[\"a\"]\n"), R"(["a"])");
  EXPECT_EQ(json_of("tags", "\nnull\n"), "null");
  EXPECT_EQ(json_of("loop", "\n1\n"), R"("1")");
}

TEST(ToolCallStream, breaks_on_xml_that_is_no_call) {
  const std::string begun = "begun 0 \"weather\"\n";
  const std::string repeated = xml(parameter("days", "1") + parameter("days", "2"));
  const std::string bare = "<tool_call>\n<function=weather>\nso</tool_call>";
  const std::string open = "<tool_call>\n<function=weather>\n<parameter=city>\nRo\nme\n</para";
  expect_events(
      ToolFormat::xml,
      {
          {"<tool_call>{\"name\"", "text \"<tool_call>{\\\"name\\\"\"\n"},
          {"<tool_call>\n<function=>x", "text \"<tool_call>\\n<function=>x\"\n"},
          {"<tool_call>\n<function=a\nb>", "text \"<tool_call>\\n<function=a\\nb>\"\n"},
          {"<tool_call>\n<tool_call><function=now></function></tool_call>",
           "text \"<tool_call>\"\nbegun 0 \"now\"\narguments 0 \"{}\"\nended 0\n"},
          {bare + "x", begun + "broken 0 " + Json(bare).dump() + "\ntext \"x\"\n"},
          {"<tool_call><function=weather></tool_call>so",
           begun + "broken 0 \"<tool_call><function=weather></tool_call>\"\ntext \"so\"\n"},
          {open,
           begun + "arguments 0 " + Json("{\"city\": \"Ro\\nme").dump() + "\nbroken 0 " +
               Json(open).dump() + "\n"},
          {repeated,
           begun + "arguments 0 " + Json("{\"days\": 1, \"days\": ").dump() + "\nbroken 0 " +
               Json(repeated).dump() + "\n"},
      }
  );
}

TEST(ToolCallStream, may_be_moved_inside_a_call) {
  auto first = std::make_unique<ToolCallStream>(ToolFormat::xml, tools());
  first->push("<tool_call>\n<function=weather>\n");
  ToolCallStream stream = std::move(*first);
  first.reset();
  std::vector<ToolEvent> events = stream.push("<parameter=days>\n3\n</parameter>\n");
  EXPECT_EQ(events.at(0).text, "{\"days\": 3");
  stream = ToolCallStream(ToolFormat::none, {});
  EXPECT_EQ(stream.push("a").at(0).text, "a");
}

TEST(ToolCallStream, without_a_format_all_is_text) {
  expect_events(ToolFormat::none, {{" <tool_call> \n", "text \" <tool_call> \\n\"\n"}});
}

/// All text that the events hold, calls as they were written left out.
size_t size_of(const std::vector<ToolEvent>& events) {
  size_t size = 0;
  for (const ToolEvent& event : events) {
    size += event.text.size();
  }
  return size;
}

// F22: hostile answers. A quadratic parser would take minutes for 8 MB.
TEST(ToolCallStream, is_linear_in_hostile_text) {
  const std::vector<std::string> parts = {
      "<tool_call>",
      "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"",
      "<tool_call>{\"arguments\":{\"",
      "<tool_call>\n<function=f>\n<parameter=a>\n",
      "</parameter",
      "\n</parameter>\n<parameter=a",
      "<tool_call><function=f><parameter=a>[[[[",
      " \n",
      "{\"a\":",
      "<",
  };
  for (const ToolFormat format : {ToolFormat::hermes, ToolFormat::xml}) {
    for (const std::string& begin : parts) {
      for (const std::string& rest : parts) {
        std::string text = begin;
        while (text.size() < 40'000) {
          text += rest;
        }
        const size_t size = size_of(events_of(format, {text}));
        EXPECT_GE(2 * size + 100, text.size());
        EXPECT_LE(size, 8 * text.size());
      }
    }
  }
}

TEST(ToolCallStream, events_of_random_answers_do_not_depend_on_cuts) {
  const std::vector<std::string> parts = {
      "<tool_call>",
      "</tool_call>",
      "{\"name\": \"",
      "weather",
      "\"",
      "\", \"arguments\": {",
      "}",
      "}}",
      "<function=",
      ">",
      "\n",
      " ",
      "<parameter=days>",
      "</parameter>",
      "</function>",
      "<",
      "/",
      "1",
      ",",
      ":",
      "\\",
      "\xC3\xA9",
      "text",
      "\"a\": ",
      "[",
      "]",
      "<function=now>"
  };
  std::mt19937 random(5);
  for (int round = 0; round < 4000; ++round) {
    const ToolFormat format = round % 2 == 0 ? ToolFormat::hermes : ToolFormat::xml;
    std::string answer = round % 3 == 0 ? "" : "<tool_call>";
    answer += round % 4 > 1 ? "{\"name\": \"now\", \"arguments\": {" : "<function=weather>";
    for (size_t part = 0; part < 1 + random() % 20; ++part) {
      answer += parts[random() % parts.size()];
    }
    const std::string whole = written(events_of(format, {answer}));
    std::vector<std::string> pieces;
    for (size_t begin = 0; begin < answer.size();) {
      const size_t size = 1 + random() % 5;
      pieces.push_back(answer.substr(begin, size));
      begin += size;
    }
    ASSERT_EQ(written(events_of(format, pieces)), whole) << answer;
  }
}

TEST(ToolFormat, is_found_in_a_templates_text) {
  EXPECT_EQ(find_tool_format("{{ messages }}"), ToolFormat::none);
  EXPECT_EQ(find_tool_format("<tool_call>\\n{\"name\": "), ToolFormat::hermes);
  EXPECT_EQ(find_tool_format("'<tool_call>\\n<function=' + name"), ToolFormat::xml);
}

}  // namespace
}  // namespace whimbrel
