#include "text/grammar.h"

#include <algorithm>
#include <random>
#include <thread>

#include "tests/text/text_folder.h"
#include "text/chat_template.h"
#include "text/tool_calls.h"

namespace whimbrel {
namespace {

constexpr size_t kVocabulary = 4000;

int32_t end_id() {
  return tiny_tokenizer().eos().value();
}

const GrammarCompiler& compiler() {
  static const GrammarCompiler compiler(
      tiny_tokenizer(), kVocabulary, std::vector<int32_t>{end_id()}
  );
  return compiler;
}

std::vector<int32_t> allowed_ids(GrammarState& state) {
  const std::span<const uint32_t> mask = state.allowed();
  EXPECT_EQ(mask.size(), (kVocabulary + 31) / 32);
  std::vector<int32_t> ids;
  for (uint32_t id = 0; id < kVocabulary; ++id) {
    if (((mask[id / 32] >> (id % 32)) & 1U) != 0) {
      ids.push_back(static_cast<int32_t>(id));
    }
  }
  return ids;
}

/// Text of random tokens up to an end; empty where none came.
std::string random_text(const Grammar& grammar, uint32_t seed, int steps) {
  std::mt19937 random(seed);
  GrammarState state(grammar);
  std::vector<int32_t> ids;
  for (int step = 0; step < steps; ++step) {
    const std::vector<int32_t> choices = allowed_ids(state);
    const int32_t id = choices[random() % choices.size()];
    EXPECT_EQ(std::ranges::count(choices, end_id()), state.can_end() ? 1 : 0);
    if (state.can_end() && (state.finished() || random() % 2 == 0)) {
      return tiny_tokenizer().decode(ids, SpecialTokens::keep);
    }
    if (id != end_id()) {
      state.accept(id);
      ids.push_back(id);
    }
  }
  return "";
}

TEST(Grammar, any_json_object_is_an_object) {
  const Grammar grammar = compiler().json_object();
  GrammarState state(grammar);
  for (const int32_t id : tiny_tokenizer().encode_text("{\"a\": [1, {}]}")) {
    EXPECT_FALSE(state.can_end());
    state.accept(id);
  }
  EXPECT_TRUE(state.can_end());
  GrammarState list(grammar);
  EXPECT_EQ(list.acceptable(tiny_tokenizer().encode_text("[]")), 0);
}

TEST(GrammarState, forks_by_copy) {
  const Grammar grammar = compiler().json_schema(Json{{"enum", {"ab", "cd"}}});
  const std::vector<int32_t> ab = tiny_tokenizer().encode_text("\"ab\"");
  GrammarState state(grammar);
  state.accept(ab[0]);
  GrammarState copy = state;
  for (size_t i = 1; i < ab.size(); ++i) {
    state.accept(ab[i]);
  }
  EXPECT_TRUE(state.finished());
  EXPECT_EQ(allowed_ids(state), std::vector<int32_t>{end_id()});
  EXPECT_FALSE(copy.finished());
  EXPECT_EQ(copy.acceptable(std::span(ab).subspan(1)), ab.size() - 1);
  copy = state;
  EXPECT_TRUE(copy.finished());
  state.accept(end_id());
  EXPECT_EQ(error_of([&] { state.accept(ab[0]); }).fault(), Fault::input);
}

TEST(GrammarState, an_id_that_is_not_allowed_is_an_error) {
  GrammarState state(compiler().json_object());
  for (const int32_t id : {end_id(), int32_t{3999}, int32_t{1'000'000}, int32_t{-1}}) {
    GrammarState copy = state;
    EXPECT_EQ(error_of([&] { copy.accept(id); }).fault(), Fault::input) << id;
  }
}

TEST(GrammarCompiler, refusals_are_the_inputs_fault) {
  for (const Json& schema : {
           Json{{"not", Json::object()}},
           Json("text"),
           Json{{"type", "string"}, {"pattern", "*a"}},
           Json{{"description", "\xFF"}},
           Json{{"description", std::string(size_t{256} << 10, 'a')}},
       }) {
    const Error error = error_of([&] { compiler().json_schema(schema); });
    EXPECT_EQ(error.fault(), Fault::input);
    EXPECT_TRUE(std::string(error.what()).starts_with("[grammar] ")) << error.what();
  }
  EXPECT_EQ(
      error_of([] {
        compiler().tool_calls({.format = ToolFormat::none, .tools = {{"f"}}});
      }).fault(),
      Fault::input
  );
  EXPECT_EQ(
      error_of([] { GrammarCompiler(tiny_tokenizer(), 10, std::vector<int32_t>{1}); }).fault(),
      Fault::model
  );
}

TEST(GrammarCompiler, may_be_used_by_several_threads) {
  const Grammar shared = compiler().json_schema(Json{{"type", "array"}});
  std::vector<std::string> texts(4);
  {
    std::vector<std::jthread> threads;
    for (uint32_t i = 0; i < texts.size(); ++i) {
      threads.emplace_back([&, i] {
        const Grammar own = compiler().json_object();
        texts[i] = random_text(shared, i % 2, 100) + random_text(own, 7, 50);
      });
    }
  }
  EXPECT_EQ(texts[0], texts[2]);
  EXPECT_EQ(texts[1], texts[3]);
}

std::vector<Tool> tools() {
  return {
      {.name = "look", .parameters = Json::parse(R"({
         "type": "object",
         "properties": {
           "where": {"type": "string", "maxLength": 12},
           "count": {"type": "integer", "minimum": 0, "maximum": 99},
           "exact": {"type": "boolean"},
           "unit": {"enum": ["cm", "in"]}
         },
         "required": ["where", "count"]
       })")},
      {.name = "stop"},
  };
}

/// What the arguments of `look` must keep.
void expect_arguments_of_look(const Json& arguments) {
  EXPECT_TRUE(arguments.at("where").is_string());
  EXPECT_TRUE(arguments.at("count").is_number_integer());
  EXPECT_LE(arguments.at("count").get<int>(), 99);
  EXPECT_TRUE(!arguments.contains("exact") || arguments.at("exact").is_boolean());
  EXPECT_TRUE(
      !arguments.contains("unit") || arguments.at("unit") == "cm" || arguments.at("unit") == "in"
  );
}

class ToolGrammar : public testing::TestWithParam<ToolFormat> {};

/// Reads an answer of calls; returns how many there were.
int expect_calls(ToolFormat format, const std::string& answer) {
  ToolCallStream stream(format, tools());
  std::vector<ToolEvent> events = stream.push(answer);
  std::ranges::move(stream.finish(), std::back_inserter(events));
  std::string name;
  std::string arguments;
  int calls = 0;
  for (const ToolEvent& event : events) {
    switch (event.kind) {
      case ToolEvent::Kind::call_begun:
        name = event.text;
        arguments.clear();
        break;
      case ToolEvent::Kind::arguments:
        arguments += event.text;
        break;
      case ToolEvent::Kind::call_ended:
        EXPECT_TRUE(Json::accept(arguments)) << answer;
        if (name == "look") {
          expect_arguments_of_look(Json::parse(arguments));
        }
        ++calls;
        break;
      default:
        ADD_FAILURE() << "got " << event.text << " in " << answer;
    }
  }
  return calls;
}

TEST_P(ToolGrammar, allows_nothing_but_calls_that_the_parser_reads) {
  const Grammar any =
      compiler().tool_calls({.format = GetParam(), .tools = tools(), .parallel = true});
  const Grammar one =
      compiler().tool_calls({.format = GetParam(), .tools = {tools()[0]}, .parallel = false});
  int texts = 0;
  for (uint32_t seed = 0; seed < 80; ++seed) {
    if (const std::string answer = random_text(any, seed, 300); !answer.empty()) {
      EXPECT_GE(expect_calls(GetParam(), answer), 1) << answer;
      ++texts;
    }
    if (const std::string answer = random_text(one, seed, 300); !answer.empty()) {
      EXPECT_EQ(expect_calls(GetParam(), answer), 1) << answer;
      EXPECT_NE(answer.find("look"), std::string::npos);
      ++texts;
    }
  }
  EXPECT_GE(texts, 30);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, ToolGrammar, testing::Values(ToolFormat::hermes, ToolFormat::xml)
);

TEST(ChatTemplate, names_its_format_of_tool_calls) {
  const auto format = [](std::string_view model) {
    return ChatTemplate::load(model_folder(model), tiny_tokenizer()).tool_format();
  };
  EXPECT_EQ(format("tiny-qwen3-vl-4bit"), ToolFormat::hermes);
  EXPECT_EQ(format("tiny-qwen2-5-vl"), ToolFormat::none);
}

}  // namespace
}  // namespace whimbrel
