#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace whimbrel {

/// Text from a file as one short, printable, quoted piece of an error message.
inline std::string quote(std::string_view text) {
  constexpr size_t kLongest = 160;
  const std::string_view kept = text.substr(0, kLongest);
  const std::string line =
      Json(std::string(kept)).dump(-1, ' ', true, Json::error_handler_t::replace);
  return kept.size() < text.size() ? line + "..." : line;
}

/// A JSON value, cut short, for an error message.
inline std::string short_json(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80);
}

}  // namespace whimbrel
