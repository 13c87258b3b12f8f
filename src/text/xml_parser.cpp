#include <algorithm>
#include <unordered_set>
#include <utility>

#include "text/parameter_value.h"
#include "text/tool_call_parser.h"

namespace whimbrel {

namespace {

constexpr std::string_view kFunction = "<function=";
constexpr std::string_view kParameter = "<parameter=";
constexpr std::string_view kEndOfParameter = "</parameter>";
constexpr std::string_view kEndOfFunction = "</function>";
constexpr std::string_view kEndOfCall = "</tool_call>";
constexpr size_t kMaxName = 256;

/// <function=f>, <parameter=a>, its text, </parameter> and so on, </function>, the closing tag.
class XmlParser : public ToolCallParser {
 public:
  explicit XmlParser(const std::vector<Tool>& tools) : tools_(tools) {}

  CallStep push(char c) override {
    switch (state_) {
      case State::function:
        return push_tag(c, {kFunction, {}});
      case State::parameter:
        return push_tag(c, {kParameter, kEndOfFunction});
      case State::close:
        return push_tag(c, {kEndOfCall, {}});
      case State::name:
      case State::key:
        return push_name(c);
      case State::value:
        push_value(c);
        return CallStep::going;
    }
    return CallStep::wrong;
  }

 private:
  enum class State { function, name, parameter, key, value, close };

  /// The tags that may come here. No two of them begin alike but for "<".
  struct Tags {
    std::string_view one;
    std::string_view other;
  };

  CallStep push_tag(char c, Tags tags) {
    if (tag_.empty() && is_white_space(c)) {
      return CallStep::going;
    }
    tag_ += c;
    if (tag_ == tags.one || tag_ == tags.other) {
      return end_tag(std::exchange(tag_, {}));
    }
    const bool fits = tags.one.starts_with(tag_) || tags.other.starts_with(tag_);
    return fits ? CallStep::going : CallStep::wrong;
  }

  CallStep end_tag(const std::string& tag) {
    token_.clear();
    if (tag == kEndOfCall) {
      return CallStep::ended;
    }
    if (tag == kEndOfFunction) {
      arguments_ += keys_.empty() ? "{}" : "}";
      state_ = State::close;
    } else {
      state_ = tag == kFunction ? State::name : State::key;
    }
    return CallStep::going;
  }

  CallStep push_name(char c) {
    if (c != '>') {
      token_ += c;
      const bool fits = c != '<' && c != '\n' && token_.size() <= kMaxName;
      return fits ? CallStep::going : CallStep::wrong;
    }
    if (token_.empty()) {
      return CallStep::wrong;
    }
    return state_ == State::name ? begin_function() : begin_parameter();
  }

  CallStep begin_function() {
    name_ = std::exchange(token_, {});
    has_name_ = true;
    const auto tool = std::ranges::find(tools_, name_, &Tool::name);
    parameters_ = tool == tools_.end() ? nullptr : &tool->parameters;
    state_ = State::parameter;
    return CallStep::going;
  }

  CallStep begin_parameter() {
    const std::string key = std::exchange(token_, {});
    arguments_ += keys_.empty() ? "{\"" : ", \"";
    arguments_ += escape_json(key) + "\": ";
    kinds_ =
        parameters_ == nullptr ? ValueKinds{.text = true} : find_value_kinds(*parameters_, key);
    if (kinds_.only_text()) {
      arguments_ += '"';
    }
    state_ = State::value;
    is_first_ = true;
    return keys_.insert(key).second ? CallStep::going : CallStep::wrong;
  }

  /// A value's first and last line breaks belong to the tags. The last one is held until another
  /// byte shows that it wasn't.
  void push_value(char c) {
    if (c == kEndOfParameter[tag_size_]) {
      if (++tag_size_ == kEndOfParameter.size()) {
        end_parameter();
      }
    } else if (tag_size_ > 0) {
      flush_line_break();
      add_to_value(kEndOfParameter.substr(0, std::exchange(tag_size_, 0)));
      push_value(c);
      return;
    } else if (c == '\n' && !is_first_) {
      flush_line_break();
      has_line_break_ = true;
    } else if (c != '\n') {
      flush_line_break();
      add_to_value({&c, 1});
    }
    is_first_ = false;
  }

  void flush_line_break() {
    if (std::exchange(has_line_break_, false)) {
      add_to_value("\n");
    }
  }

  void add_to_value(std::string_view text) {
    if (kinds_.only_text()) {
      arguments_ += escape_json(text);
    } else {
      token_ += text;
    }
  }

  void end_parameter() {
    arguments_ += kinds_.only_text() ? "\"" : to_json_value(token_, kinds_);
    token_.clear();
    tag_size_ = 0;
    has_line_break_ = false;
    state_ = State::parameter;
  }

  const std::vector<Tool>& tools_;
  State state_ = State::function;
  std::string tag_;    // a tag so far
  std::string token_;  // a name, a key, or a value that is no text
  const Json* parameters_ = nullptr;
  std::unordered_set<std::string> keys_;
  ValueKinds kinds_;
  size_t tag_size_ = 0;  // of a parameter's closing tag
  bool is_first_ = false;
  bool has_line_break_ = false;
};

}  // namespace

std::unique_ptr<ToolCallParser> make_xml_parser(const std::vector<Tool>& tools) {
  return std::make_unique<XmlParser>(tools);
}

}  // namespace whimbrel
