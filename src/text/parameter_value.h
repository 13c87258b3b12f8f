#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace whimbrel {

/// The types that a parameter's schema allows.
struct ValueKinds {
  bool text = false;
  bool number = false;
  bool boolean = false;
  bool null = false;
  bool array = false;
  bool object = false;

  bool only_text() const { return !(number || boolean || null || array || object); }
};

/// The types of one property of a tool's parameters: from "type", "const" and "enum", through
/// "anyOf", "oneOf", "allOf" and references inside the document. Text where nothing says more.
ValueKinds find_value_kinds(const Json& parameters, const std::string& key);

/// JSON of a parameter that was written as bare text. JSON of an allowed type stays as it was
/// written; True, False and None count as JSON; anything else becomes a string.
std::string to_json_value(std::string_view text, const ValueKinds& kinds);

/// The inside of a JSON string, without its quotes.
std::string escape_json(std::string_view text);

}  // namespace whimbrel
