#include <utility>

#include "base/json.h"
#include "text/json_scanner.h"
#include "text/tool_call_parser.h"

namespace whimbrel {

namespace {

constexpr std::string_view kClose = "</tool_call>";
constexpr size_t kMaxName = 256;

/// {"name": "f", "arguments": {…}} in either order, then the closing tag.
class HermesParser : public ToolCallParser {
 public:
  CallStep push(char c) override {
    switch (state_) {
      case State::key:
        return push_key(c);
      case State::name:
        return push_name(c);
      case State::arguments:
        return push_arguments(c);
      case State::tag:
        return push_tag(c);
      default:
        return is_white_space(c) ? CallStep::going : push_between(c);
    }
  }

 private:
  enum class State { begin, key_or_end, quote, key, colon, value, name, arguments, behind, tag };

  CallStep push_between(char c) {
    switch (state_) {
      case State::begin:
        return go_if(c == '{', State::key_or_end);
      case State::key_or_end:
      case State::quote:
        token_ = c;
        scanner_ = {};
        scanner_.push(c);
        return go_if(c == '"', State::key);
      case State::colon:
        return go_if(c == ':', State::value);
      case State::value:
        return begin_value(c);
      default:
        return c == ',' ? go_if(true, State::quote) : end_object(c);
    }
  }

  CallStep begin_value(char c) {
    scanner_ = {};
    if (is_name_) {
      token_ = "";
      state_ = State::name;
      return c == '"' ? push_name(c) : CallStep::wrong;
    }
    state_ = State::arguments;
    return c == '{' ? push_arguments(c) : CallStep::wrong;
  }

  CallStep push_key(char c) {
    token_ += c;
    const JsonScanner::Step step = scanner_.push(c);
    if (step != JsonScanner::Step::ended) {
      return go_if(step == JsonScanner::Step::going && token_.size() <= kMaxName, State::key);
    }
    is_name_ = token_ == R"("name")";
    bool& seen = is_name_ ? has_seen_name_ : has_seen_arguments_;
    const bool is_known = is_name_ || token_ == R"("arguments")";
    return go_if(is_known && !std::exchange(seen, true), State::colon);
  }

  CallStep push_name(char c) {
    token_ += c;
    const JsonScanner::Step step = scanner_.push(c);
    if (step != JsonScanner::Step::ended) {
      return go_if(step == JsonScanner::Step::going && token_.size() <= kMaxName, State::name);
    }
    // Lone surrogates pass the scanner, but are no text.
    const Json name = Json::parse(token_, nullptr, false);
    if (!name.is_string() || name.get_ref<const std::string&>().empty()) {
      return CallStep::wrong;
    }
    name_ = name.get<std::string>();
    has_name_ = true;
    return go_if(true, State::behind);
  }

  CallStep push_arguments(char c) {
    const JsonScanner::Step step = scanner_.push(c);
    if (step == JsonScanner::Step::wrong) {
      return CallStep::wrong;
    }
    arguments_ += c;
    return go_if(true, step == JsonScanner::Step::ended ? State::behind : State::arguments);
  }

  CallStep end_object(char c) {
    if (c != '}' || !has_name_) {
      return CallStep::wrong;
    }
    if (!has_seen_arguments_) {
      arguments_ = "{}";
    }
    return go_if(true, State::tag);
  }

  CallStep push_tag(char c) {
    if (tag_ == 0 && is_white_space(c)) {
      return CallStep::going;
    }
    if (c != kClose[tag_]) {
      return CallStep::wrong;
    }
    return ++tag_ == kClose.size() ? CallStep::ended : CallStep::going;
  }

  CallStep go_if(bool fits, State next) {
    state_ = next;
    return fits ? CallStep::going : CallStep::wrong;
  }

  State state_ = State::begin;
  JsonScanner scanner_;
  std::string token_;  // a key or the name, with its quotes
  bool is_name_ = false;
  bool has_seen_name_ = false;
  bool has_seen_arguments_ = false;
  size_t tag_ = 0;
};

}  // namespace

std::unique_ptr<ToolCallParser> make_hermes_parser() {
  return std::make_unique<HermesParser>();
}

}  // namespace whimbrel
