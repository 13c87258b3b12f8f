#include "server/access_log.h"

#include <fmt/format.h>

namespace whimbrel::http {

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::answered:
      return "answered";
    case Outcome::refused:
      return "refused";
    case Outcome::failed:
      return "failed";
    case Outcome::client_left_waiting:
      return "client_left_waiting";
    case Outcome::client_left:
      return "client_left";
    case Outcome::slow_reader:
      return "slow_reader";
    case Outcome::stopped:
      return "stopped";
  }
  return "unknown";
}

std::string escape_for_log(std::string_view text, size_t longest) {
  std::string escaped;
  for (const char c : text.substr(0, longest)) {
    if (c < ' ' || c > '~' || c == '\\') {
      escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      escaped += c;
    }
  }
  return text.size() > longest ? escaped + "..." : escaped;
}

}  // namespace whimbrel::http
