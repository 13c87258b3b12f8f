#include "text/json_scanner.h"

#include <string_view>

#include "text/tool_call_parser.h"

namespace whimbrel {

namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxNumber = 64;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

void skip_digits(std::string_view& text) {
  while (!text.empty() && is_digit(text.front())) {
    text.remove_prefix(1);
  }
}

bool skip(std::string_view& text, std::string_view any_of) {
  const bool found = !text.empty() && any_of.find(text.front()) != std::string_view::npos;
  text.remove_prefix(found ? 1 : 0);
  return found;
}

bool skip_some_digits(std::string_view& text) {
  const size_t before = text.size();
  skip_digits(text);
  return text.size() < before;
}

bool is_number(std::string_view text) {
  skip(text, "-");
  if (!skip(text, "0") && !skip_some_digits(text)) {
    return false;
  }
  if (skip(text, ".") && !skip_some_digits(text)) {
    return false;
  }
  if (skip(text, "eE")) {
    skip(text, "+-");
    return skip_some_digits(text) && text.empty();
  }
  return text.empty();
}

}  // namespace

JsonScanner::Step JsonScanner::push(char c) {
  switch (state_) {
    case State::string:
      return push_string(c);
    case State::escape:
      return push_escape(c);
    case State::hex:
      state_ = --hex_left_ == 0 ? State::string : State::hex;
      return is_hex(c) ? Step::going : Step::wrong;
    case State::number:
      return push_number(c);
    case State::word:
      if (c != *word_) {
        return Step::wrong;
      }
      return *++word_ == '\0' ? end_value() : Step::going;
    default:
      break;
  }
  if (is_white_space(c)) {
    return Step::going;
  }
  return state_ == State::behind ? push_behind(c) : push_value(c);
}

/// Where a value, a key or a colon must come.
JsonScanner::Step JsonScanner::push_value(char c) {
  if (state_ == State::colon) {
    state_ = State::value;
    return c == ':' ? Step::going : Step::wrong;
  }
  const bool wants_key = state_ == State::key || state_ == State::first_key;
  if ((state_ == State::first_key && c == '}') || (state_ == State::first_item && c == ']')) {
    return close();
  }
  if (c == '"') {
    is_key_ = wants_key;
    state_ = State::string;
    return Step::going;
  }
  if (wants_key) {
    return Step::wrong;
  }
  if (c == '{' || c == '[') {
    return open(c);
  }
  if (c == '-' || is_digit(c)) {
    token_ = c;
    state_ = State::number;
    return Step::going;
  }
  word_ = c == 't' ? "rue" : c == 'f' ? "alse" : c == 'n' ? "ull" : "";
  state_ = State::word;
  return *word_ == '\0' ? Step::wrong : Step::going;
}

JsonScanner::Step JsonScanner::push_string(char c) {
  if (c == '"') {
    if (is_key_) {
      state_ = State::colon;
      return Step::going;
    }
    return end_value();
  }
  if (c == '\\') {
    state_ = State::escape;
  }
  return static_cast<unsigned char>(c) < 0x20 ? Step::wrong : Step::going;
}

JsonScanner::Step JsonScanner::push_escape(char c) {
  if (c == 'u') {
    hex_left_ = 4;
    state_ = State::hex;
    return Step::going;
  }
  state_ = State::string;
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  return kEscapes.find(c) != std::string_view::npos ? Step::going : Step::wrong;
}

JsonScanner::Step JsonScanner::push_number(char c) {
  constexpr std::string_view kInside = "+-.eE0123456789";
  if (kInside.find(c) != std::string_view::npos) {
    token_ += c;
    return token_.size() > kMaxNumber ? Step::wrong : Step::going;
  }
  if (!is_number(token_)) {
    return Step::wrong;
  }
  end_value();
  return push(c);
}

JsonScanner::Step JsonScanner::push_behind(char c) {
  if (c == ',') {
    state_ = open_.back() == '{' ? State::key : State::value;
    return Step::going;
  }
  const bool fits = (c == '}' && open_.back() == '{') || (c == ']' && open_.back() == '[');
  return fits ? close() : Step::wrong;
}

JsonScanner::Step JsonScanner::open(char c) {
  if (open_.size() == kMaxDepth) {
    return Step::wrong;
  }
  open_ += c;
  state_ = c == '{' ? State::first_key : State::first_item;
  return Step::going;
}

JsonScanner::Step JsonScanner::close() {
  open_.pop_back();
  return end_value();
}

JsonScanner::Step JsonScanner::end_value() {
  state_ = State::behind;
  is_key_ = false;
  return open_.empty() ? Step::ended : Step::going;
}

}  // namespace whimbrel
