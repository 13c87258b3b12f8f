#include "server/http_message.h"

#include <algorithm>

namespace whimbrel::http {

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

const std::string* Request::find(std::string_view name) const {
  const auto field =
      std::find_if(fields.begin(), fields.end(), [name](const Field& f) { return f.name == name; });
  return field == fields.end() ? nullptr : &field->value;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return lower(x) == lower(y);
  });
}

std::string lower_case(std::string_view text) {
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), lower);
  return lowered;
}

}  // namespace whimbrel::http
