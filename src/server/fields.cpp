#include "server/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace whimbrel::wire {

namespace {

/// At most so many bytes, and no half character.
std::string_view shortened(std::string_view text, size_t longest) {
  if (text.size() <= longest) {
    return text;
  }
  size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return text.substr(0, end);
}

[[noreturn]] void refuse_body(std::string_view message) {
  throw http::ApiException(
      {.kind = http::ErrorKind::bad_request,
       .message = std::string(message),
       .code = "invalid_json"}
  );
}

std::string quoted(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

bool has_few_members(std::string_view json, int depth, int members) {
  std::vector<int> counts;  // of each open object or list
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (std::ssize(counts) >= depth) {
        return true;  // the parser refuses it there
      }
      counts.push_back(0);
    } else if ((c == '}' || c == ']') && !counts.empty()) {
      counts.pop_back();
    } else if (c == ':' && !counts.empty() && ++counts.back() > members) {
      return false;
    }
  }
  return true;
}

Json parse_body(std::string_view body, const RequestLimits& limits) {
  constexpr size_t kLongestReason = 300;  // the library quotes what it read, however long
  if (!has_few_members(body, limits.json_depth, limits.json_members)) {
    refuse_body(
        fmt::format("[body] got an object of over {} members, expected fewer", limits.json_members)
    );
  }
  try {
    Json json = parse_json(
        body, "body", Fault::input, {.depth = limits.json_depth, .nodes = limits.json_values}
    );
    if (!json.is_object()) {
      refuse_body(fmt::format("[body] got {}, expected an object", shown(json)));
    }
    return json;
  } catch (const Error& error) {
    refuse_body(shortened(error.what(), kLongestReason));
  }
}

void refuse(const std::string& param, std::string_view got, std::string_view expected) {
  throw http::ApiException(
      {.kind = http::ErrorKind::bad_request,
       .message = fmt::format("[{}] got {}, expected {}", param, got, expected),
       .param = param,
       .code = "invalid_value"}
  );
}

std::string shown(const Json& value) {
  constexpr size_t kLongest = 40;
  if (value.is_object()) {
    return "an object";
  }
  if (value.is_array()) {
    return fmt::format("a list of {}", value.size());
  }
  if (!value.is_string()) {
    return value.dump();
  }
  const std::string& text = value.get_ref<const std::string&>();
  return quoted(shortened(text, kLongest)) + (text.size() > kLongest ? "..." : "");
}

int64_t to_integer(const Field& field, int64_t min, int64_t max) {
  const Json& value = field.value;
  const bool is_integer = value.is_number_integer();
  const bool is_larger = is_integer && value.is_number_unsigned() &&
                         value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (!is_integer || is_larger || value.get<int64_t>() < min || value.get<int64_t>() > max) {
    refuse(field.path, shown(value), fmt::format("an integer from {} to {}", min, max));
  }
  return value.get<int64_t>();
}

double to_number(const Field& field, double min, double max) {
  const double number = field.value.is_number() ? field.value.get<double>() : std::nan("");
  if (!(number >= min && number <= max)) {
    refuse(field.path, shown(field.value), fmt::format("a number from {} to {}", min, max));
  }
  return number;
}

bool to_boolean(const Field& field) {
  if (!field.value.is_boolean()) {
    refuse(field.path, shown(field.value), "true or false");
  }
  return field.value.get<bool>();
}

const std::string& to_text(const Field& field) {
  if (!field.value.is_string()) {
    refuse(field.path, shown(field.value), "a string");
  }
  return field.value.get_ref<const std::string&>();
}

const Json& to_list(const Field& field) {
  if (!field.value.is_array()) {
    refuse(field.path, shown(field.value), "a list");
  }
  return field.value;
}

const Json& to_object(const Field& field) {
  if (!field.value.is_object()) {
    refuse(field.path, shown(field.value), "an object");
  }
  return field.value;
}

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object.is_object()) {
    refuse(path_.empty() ? "body" : path_, shown(object), "an object");
  }
}

std::string Fields::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

std::optional<Field> Fields::find(std::string_view key) {
  read_.emplace(key);
  const Json::const_iterator found = object_.find(std::string(key));
  if (found == object_.end() || found->is_null()) {
    return std::nullopt;
  }
  return Field{*found, path_of(key)};
}

Field Fields::require(std::string_view key) {
  std::optional<Field> field = find(key);
  if (!field) {
    refuse(path_of(key), "nothing", "a value: the field is required");
  }
  return *std::move(field);
}

std::optional<int64_t> Fields::integer(std::string_view key, int64_t min, int64_t max) {
  const std::optional<Field> field = find(key);
  return field ? std::optional(to_integer(*field, min, max)) : std::nullopt;
}

std::optional<double> Fields::number(std::string_view key, double min, double max) {
  const std::optional<Field> field = find(key);
  return field ? std::optional(to_number(*field, min, max)) : std::nullopt;
}

std::optional<bool> Fields::boolean(std::string_view key) {
  const std::optional<Field> field = find(key);
  return field ? std::optional(to_boolean(*field)) : std::nullopt;
}

std::optional<std::string> Fields::text(std::string_view key) {
  const std::optional<Field> field = find(key);
  return field ? std::optional(to_text(*field)) : std::nullopt;
}

std::optional<std::string> Fields::one_of(
    std::string_view key, std::initializer_list<std::string_view> values
) {
  const std::optional<Field> field = find(key);
  if (!field) {
    return std::nullopt;
  }
  if (!field->value.is_string() || std::ranges::count(values, to_text(*field)) == 0) {
    refuse(field->path, shown(field->value), fmt::format("one of {}", fmt::join(values, ", ")));
  }
  return to_text(*field);
}

void Fields::refuse_present(std::string_view key, std::string_view expected) {
  if (const std::optional<Field> field = find(key)) {
    refuse(field->path, shown(field->value), expected);
  }
}

std::vector<std::string> Fields::unread() const {
  std::vector<std::string> keys;
  for (const auto& item : object_.items()) {
    if (!read_.contains(item.key())) {
      keys.push_back(item.key());
    }
  }
  return keys;
}

}  // namespace whimbrel::wire
