#include "text/boxes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "base/json.h"
#include "text/tool_call_parser.h"

namespace whimbrel {

namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxNumber = 32;  // characters
constexpr double kMaxCoordinate = 1e6;
constexpr size_t kMaxDigits = 4;   // of a number in a pair
constexpr size_t kMaxLabel = 256;  // of pairs: many boxes may share it

/// How many numbers the place has that a key of JSON, in its quotes, stands for; 0: it is none.
size_t numbers_of(std::string_view key) {
  return key == R"("bbox_2d")" ? 4 : key == R"("point_2d")" ? 2 : 0;
}

std::optional<double> coordinate(std::string_view written) {
  if (written.size() > kMaxNumber) {
    return std::nullopt;
  }
  const Json number = Json::parse(written, nullptr, false);
  if (!number.is_number() || std::abs(number.get<double>()) > kMaxCoordinate) {
    return std::nullopt;
  }
  return number.get<double>();
}

/// Finds the objects that name boxes in a text that may hold anything else. It doesn't go back:
/// what turns out to be no JSON is given up where that shows. Commas and colons aren't checked.
class JsonBoxes {
 public:
  explicit JsonBoxes(std::string_view text) : text_(text) {}

  std::vector<Box> find() {
    while (at_ < text_.size()) {
      if (open_.empty()) {
        at_ = std::min(text_.find('{', at_), text_.size());
      }
      if (at_ < text_.size()) {
        read_token();
      }
    }
    return std::move(boxes_);
  }

 private:
  /// An object or array that is open.
  struct Level {
    bool is_object = false;
    std::string_view key = {};                     // of an object: what the next value is for
    std::vector<std::vector<double>> places = {};  // of an object
    std::string label = {};                        // of an object
    size_t count = 0;                              // of an array: 0 where it is no place
    std::vector<double> numbers = {};              // of an array that is a place
  };

  void read_token() {
    const char c = text_[at_];
    if (c == '{' || c == '[') {
      open(c == '{');
    } else if (c == '}' || c == ']') {
      close(c == '}');
    } else if (c == '"') {
      read_string();
    } else if (c == ',' || c == ':' || is_white_space(c)) {
      ++at_;
    } else {
      read_word();
    }
  }

  void open(bool is_object) {
    const bool fits = open_.empty() || !open_.back().is_object || !open_.back().key.empty();
    if (!fits || open_.size() == kMaxDepth) {
      return give_up();
    }
    const size_t count = open_.empty() || is_object ? 0 : numbers_of(open_.back().key);
    open_.push_back({.is_object = is_object, .count = count});
    ++at_;
  }

  void close(bool is_object) {
    if (open_.back().is_object != is_object) {
      return give_up();
    }
    Level closed = std::move(open_.back());
    open_.pop_back();
    for (std::vector<double>& place : closed.places) {
      boxes_.push_back({std::move(place), closed.label});
    }
    if (closed.count > 0 && closed.numbers.size() == closed.count) {
      add_place(open_.back(), std::move(closed.numbers));
    }
    ++at_;
    end_value();
  }

  /// One of a kind: places of an object share its label, so they must not be many.
  static void add_place(Level& object, std::vector<double> numbers) {
    std::erase_if(object.places, [&](const auto& place) { return place.size() == numbers.size(); });
    object.places.push_back(std::move(numbers));
  }

  void read_string() {
    const size_t begin = at_;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < ' ') {
        return give_up();
      }
      at_ += text_[at_] == '\\' ? 1 : 0;
    }
    if (at_ >= text_.size()) {
      return;
    }
    const std::string_view written = text_.substr(begin, ++at_ - begin);
    Level& level = open_.back();
    if (level.is_object && level.key.empty()) {
      level.key = written;
      return;
    }
    if (level.key == R"("label")") {
      const Json label = Json::parse(written, nullptr, false);
      level.label = label.is_string() ? label.get<std::string>() : "";
    }
    end_value();
  }

  /// A number, true, false or null.
  void read_word() {
    constexpr std::string_view kInside = "+-.0123456789Eaeflnrstu";
    const size_t end = std::min(text_.find_first_not_of(kInside, at_), text_.size());
    const std::string_view word = text_.substr(at_, end - at_);
    Level& level = open_.back();
    if (word.empty() || (level.is_object && level.key.empty())) {
      return give_up();
    }
    at_ = end;
    if (level.numbers.size() < level.count) {
      const std::optional<double> number = coordinate(word);
      level.numbers.push_back(number.value_or(0));
      level.count = number ? level.count : 0;
    } else {
      end_value();
    }
  }

  /// Behind a value that is no number of a place.
  void end_value() {
    if (!open_.empty()) {
      open_.back().key = {};
      open_.back().count = 0;
    }
  }

  /// This is no JSON, up to here; here may begin some.
  void give_up() { open_.clear(); }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Level> open_;
  std::vector<Box> boxes_;
};

bool skip(std::string_view& text, char c) {
  const bool found = text.starts_with(c);
  text.remove_prefix(found ? 1 : 0);
  return found;
}

std::optional<double> take_number(std::string_view& text) {
  double number = 0;
  size_t digits = 0;
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; ++digits) {
    number = number * 10 + (text.front() - '0');
    text.remove_prefix(1);
  }
  return digits > 0 && digits <= kMaxDigits ? std::optional(number) : std::nullopt;
}

/// "(1,2)", taken off a text that begins with it.
std::optional<std::array<double, 2>> take_pair(std::string_view& text) {
  std::string_view rest = text;
  if (!skip(rest, '(')) {
    return std::nullopt;
  }
  const std::optional<double> x = take_number(rest);
  const bool has_comma = skip(rest, ',');
  const std::optional<double> y = take_number(rest);
  if (!x || !has_comma || !y || !skip(rest, ')')) {
    return std::nullopt;
  }
  text = rest;
  return std::array{*x, *y};
}

/// The numbers of a chain of pairs, "(1,2),(3,4)", taken off a text that begins with one.
std::vector<double> take_chain(std::string_view& text) {
  std::vector<double> numbers;
  std::string_view rest = text;
  while (const std::optional<std::array<double, 2>> pair = take_pair(rest)) {
    numbers.insert(numbers.end(), pair->begin(), pair->end());
    text = rest;
    if (!skip(rest, ',')) {
      break;
    }
  }
  return numbers;
}

/// What the text between two boxes calls the second one.
std::string label_in(std::string_view between) {
  // A checkpoint may have the family's tokens without calling them special.
  constexpr std::string_view kLabel = "<|object_ref_start|>";
  if (const size_t marked = between.rfind(kLabel); marked != std::string_view::npos) {
    between.remove_prefix(marked + kLabel.size());
  }
  between = between.substr(0, between.find("<|"));
  between.remove_prefix(between.rfind('\n') + 1);
  constexpr std::string_view kBeside = " \t\r,.;:\"";
  const size_t begin = between.find_first_not_of(kBeside);
  if (begin == std::string_view::npos) {
    return {};
  }
  const size_t end = between.find_last_not_of(kBeside) + 1;
  return end - begin > kMaxLabel ? "" : std::string(between.substr(begin, end - begin));
}

std::vector<Box> boxes_in_pairs(std::string_view text) {
  std::vector<Box> boxes;
  size_t behind_last = 0;
  for (size_t at = text.find('('); at < text.size(); at = text.find('(', at)) {
    std::string_view rest = text.substr(at);
    std::vector<double> numbers = take_chain(rest);
    const size_t end = text.size() - rest.size();
    if (numbers.size() == 4) {
      std::string label = label_in(text.substr(behind_last, at - behind_last));
      if (label.empty() && !boxes.empty()) {
        label = boxes.back().label;
      }
      boxes.push_back({std::move(numbers), std::move(label)});
      behind_last = end;
    }
    at = std::max(at + 1, end);
  }
  return boxes;
}

}  // namespace

std::vector<Box> find_boxes(std::string_view text, BoxNotation notation) {
  std::vector<Box> boxes = JsonBoxes(text).find();
  return boxes.empty() && notation == BoxNotation::pairs ? boxes_in_pairs(text) : boxes;
}

}  // namespace whimbrel
