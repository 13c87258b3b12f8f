#include "text/grammar.h"

#include <fmt/format.h>

#include <utility>

#include "text/textkit_handle.h"

namespace whimbrel {

namespace {

constexpr std::string_view kWhere = "grammar";

/// JSON of what a request holds, which may be no UTF-8.
std::string to_text(const Json& value) {
  try {
    return value.dump();
  } catch (const Json::exception& error) {
    throw Error(Fault::input, kWhere, "got text that isn't UTF-8: {}", error.what());
  }
}

std::unique_ptr<textkit::GrammarStateHandle> copy_of(const textkit::GrammarStateHandle& handle) {
  textkit_grammar_state* copy = nullptr;
  textkit::check(textkit_grammar_state_copy(handle.get(), &copy), Fault::input, kWhere);
  return std::make_unique<textkit::GrammarStateHandle>(copy);
}

}  // namespace

Grammar::Grammar(std::shared_ptr<const textkit::GrammarHandle> handle)
    : handle_(std::move(handle)) {}

GrammarCompiler::GrammarCompiler(
    const Tokenizer& tokenizer, size_t vocabulary, std::span<const int32_t> ends
) {
  textkit_grammar_compiler* compiler = nullptr;
  textkit::check(
      textkit_grammar_compiler_new(
          tokenizer.handle_->get(), vocabulary, ends.data(), ends.size(), &compiler
      ),
      Fault::model,
      kWhere
  );
  handle_ = std::make_shared<textkit::GrammarCompilerHandle>(compiler);
}

Grammar GrammarCompiler::json_object() const {
  return compile("json_object", "");
}

Grammar GrammarCompiler::json_schema(const Json& schema) const {
  return compile("json_schema", fmt::format(R"(,"schema":{})", to_text(schema)));
}

Grammar GrammarCompiler::tool_calls(const ToolCallsSpec& spec) const {
  if (spec.format == ToolFormat::none) {
    throw Error(
        Fault::input,
        "tools",
        "got tools for a model whose chat template knows none, expected a request without tools"
    );
  }
  Json tools = Json::array();
  for (const Tool& tool : spec.tools) {
    tools.push_back({{"name", tool.name}, {"parameters", tool.parameters}});
  }
  const std::string_view format = spec.format == ToolFormat::xml ? "xml" : "hermes";
  return compile(
      "tool_calls",
      fmt::format(
          R"(,"format":"{}","parallel":{},"tools":{})", format, spec.parallel, to_text(tools)
      )
  );
}

Grammar GrammarCompiler::compile(std::string_view kind, std::string_view members) const {
  const std::string spec = fmt::format(R"({{"kind":"{}"{}}})", kind, members);
  textkit_grammar* grammar = nullptr;
  textkit::check(
      textkit_grammar_compile(handle_->get(), spec.data(), spec.size(), &grammar),
      Fault::input,
      kWhere
  );
  return Grammar(std::make_shared<textkit::GrammarHandle>(grammar));
}

GrammarState::GrammarState(const Grammar& grammar) {
  textkit_grammar_state* state = nullptr;
  textkit::check(textkit_grammar_state_new(grammar.handle_->get(), &state), Fault::input, kWhere);
  handle_ = std::make_unique<textkit::GrammarStateHandle>(state);
}

GrammarState::GrammarState(const GrammarState& other)
    : handle_(copy_of(*other.handle_)), finished_(other.finished_) {}

GrammarState& GrammarState::operator=(const GrammarState& other) {
  return *this = GrammarState(other);
}

GrammarState::GrammarState(GrammarState&&) noexcept = default;
GrammarState& GrammarState::operator=(GrammarState&&) noexcept = default;
GrammarState::~GrammarState() = default;

std::span<const uint32_t> GrammarState::allowed() {
  textkit_mask mask{};
  textkit::check(textkit_grammar_allowed(handle_->get(), &mask), Fault::input, kWhere);
  return {mask.words, mask.size};
}

void GrammarState::accept(int32_t id) {
  textkit::check(textkit_grammar_accept(handle_->get(), id, &finished_), Fault::input, kWhere);
}

size_t GrammarState::acceptable(std::span<const int32_t> ids) {
  size_t count = 0;
  textkit::check(
      textkit_grammar_acceptable(handle_->get(), ids.data(), ids.size(), &count),
      Fault::input,
      kWhere
  );
  return count;
}

bool GrammarState::can_end() {
  bool can_end = false;
  textkit::check(textkit_grammar_can_end(handle_->get(), &can_end), Fault::input, kWhere);
  return can_end;
}

}  // namespace whimbrel
