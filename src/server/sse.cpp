#include "server/sse.h"

#include <stdexcept>

namespace whimbrel::http {

namespace {

std::string_view one_line(std::string_view text) {
  if (text.find_first_of("\r\n") != std::string_view::npos) {
    throw std::logic_error("[sse] got a name or comment of several lines, expected one");
  }
  return text;
}

}  // namespace

std::string sse_data(std::string_view data) {
  std::string frame;
  frame.reserve(data.size() + 8);
  size_t begin = 0;
  while (true) {
    // A client ends lines at CR, LF and CRLF alike.
    const size_t end = data.find_first_of("\r\n", begin);
    frame.append("data: ").append(data.substr(begin, end - begin)).append("\n");
    if (end == std::string_view::npos) {
      return frame.append("\n");
    }
    begin = end + (data.substr(end, 2) == "\r\n" ? 2 : 1);
  }
}

std::string sse_event(std::string_view name, std::string_view data) {
  return std::string("event: ").append(one_line(name)).append("\n").append(sse_data(data));
}

std::string sse_comment(std::string_view text) {
  return std::string(": ").append(one_line(text)).append("\n\n");
}

}  // namespace whimbrel::http
