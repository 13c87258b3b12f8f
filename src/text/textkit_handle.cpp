#include "text/textkit_handle.h"

namespace whimbrel::textkit {

void check(char* error, Fault fault, std::string_view where) {
  if (error == nullptr) {
    return;
  }
  const std::unique_ptr<char, decltype(&textkit_free_error)> owned(error, &textkit_free_error);
  throw Error(fault, where, "{}", owned.get());
}

std::string take(textkit_text text) {
  const std::unique_ptr<textkit_text, void (*)(textkit_text*)> owned(
      &text, [](textkit_text* taken) { textkit_free_text(*taken); }
  );
  return std::string(text.data, text.size);
}

std::vector<int32_t> take(textkit_ids ids) {
  const std::unique_ptr<textkit_ids, void (*)(textkit_ids*)> owned(&ids, [](textkit_ids* taken) {
    textkit_free_ids(*taken);
  });
  return std::vector<int32_t>(ids.data, ids.data + ids.size);
}

}  // namespace whimbrel::textkit
