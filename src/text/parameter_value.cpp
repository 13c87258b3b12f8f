#include "text/parameter_value.h"

#include <fmt/format.h>

#include <algorithm>

namespace whimbrel {

namespace {

/// Schemas looked at for one parameter: references may run in circles.
constexpr int kMaxSchemas = 256;
constexpr std::string_view kWhiteSpace = " \n\r\t";

void add_kind(ValueKinds& kinds, std::string_view type) {
  kinds.text |= type == "string";
  kinds.number |= type == "integer" || type == "number";
  kinds.boolean |= type == "boolean";
  kinds.null |= type == "null";
  kinds.array |= type == "array";
  kinds.object |= type == "object";
}

std::string_view kind_of(const Json& value) {
  return value.is_number() ? "number" : value.type_name();
}

/// What a JSON pointer leads to; null where it is none, or leads nowhere.
const Json* find_pointer(const Json& root, const std::string& text) {
  try {
    const Json::json_pointer pointer(text);
    return root.contains(pointer) ? &root.at(pointer) : nullptr;
  } catch (const Json::exception&) {
    return nullptr;
  }
}

class KindFinder {
 public:
  explicit KindFinder(const Json& root) : root_(root) {}

  ValueKinds find(const Json& schema) {
    look(schema);
    kinds_.text |= kinds_.only_text();
    return kinds_;
  }

 private:
  void look(const Json& schema) {
    if (!schema.is_object() || --schemas_left_ < 0) {
      return;
    }
    for (const auto& [key, value] : schema.items()) {
      look_at_member(key, value);
    }
  }

  void look_at_member(const std::string& key, const Json& value) {
    if (key == "$ref") {
      look_at_reference(value);
    } else if (key == "type" && value.is_string()) {
      add_kind(kinds_, value.get_ref<const std::string&>());
    } else if (key == "const") {
      add_kind(kinds_, kind_of(value));
    } else if (value.is_array()) {
      look_at_list(key, value);
    }
  }

  void look_at_list(const std::string& key, const Json& list) {
    for (const Json& item : list) {
      if (key == "anyOf" || key == "oneOf" || key == "allOf") {
        look(item);
      } else if (key == "enum") {
        add_kind(kinds_, kind_of(item));
      } else if (key == "type" && item.is_string()) {
        add_kind(kinds_, item.get_ref<const std::string&>());
      }
    }
  }

  void look_at_reference(const Json& reference) {
    if (!reference.is_string() || !reference.get_ref<const std::string&>().starts_with("#/")) {
      return;
    }
    if (const Json* target = find_pointer(root_, reference.get<std::string>().substr(1))) {
      look(*target);
    }
  }

  const Json& root_;
  ValueKinds kinds_;
  int schemas_left_ = kMaxSchemas;
};

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kWhiteSpace), text.size());
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) + 1 - begin);
}

bool allows(const ValueKinds& kinds, const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return kinds.null;
    case Json::value_t::boolean:
      return kinds.boolean;
    case Json::value_t::object:
      return kinds.object;
    case Json::value_t::array:
      return kinds.array;
    default:
      return kinds.number && value.is_number();
  }
}

bool is_allowed_json(std::string_view text, const ValueKinds& kinds) {
  try {
    return allows(kinds, parse_json(text, "arguments", Fault::input));
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

ValueKinds find_value_kinds(const Json& parameters, const std::string& key) {
  if (!has_value(parameters, "properties") || !has_value(parameters.at("properties"), key)) {
    return {.text = true};
  }
  return KindFinder(parameters).find(parameters.at("properties").at(key));
}

std::string to_json_value(std::string_view text, const ValueKinds& kinds) {
  const std::string_view value = trimmed(text);
  if (!kinds.only_text() && is_allowed_json(value, kinds)) {
    return std::string(value);
  }
  if (kinds.boolean && (value == "True" || value == "False")) {
    return value == "True" ? "true" : "false";
  }
  if (kinds.null && value == "None") {
    return "null";
  }
  return fmt::format("\"{}\"", escape_json(text));
}

std::string escape_json(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      escaped += {'\\', c};
    } else if (c == '\n') {
      escaped += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace whimbrel
