#include "server/response_head.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <stdexcept>

namespace whimbrel::http {

namespace {

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";
  }
}

void add(std::string& head, std::string_view name, std::string_view value) {
  constexpr std::string_view kLineEnds("\r\n\0", 3);
  if (name.find_first_of(kLineEnds) != std::string_view::npos ||
      value.find_first_of(kLineEnds) != std::string_view::npos) {
    throw std::logic_error("[response] got a header field of several lines, expected one");
  }
  head.append(name).append(": ").append(value).append("\r\n");
}

void add_framing(std::string& head, const Response& response, Framing framing) {
  if (framing == Framing::length) {
    add(head, "Content-Length", std::to_string(response.body.size()));
  } else if (framing == Framing::chunked) {
    add(head, "Transfer-Encoding", "chunked");
  }
}

}  // namespace

std::string response_head(const Response& response, const AnswerFrame& frame) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_of(response.status));
  add(head, "Date", fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(std::time(nullptr))));
  add_framing(head, response, frame.framing);
  if (frame.framing != Framing::no_body) {
    add(head, "Content-Type", response.content_type);
  }
  // OpenAI's clients read the first, Anthropic's the second.
  add(head, "x-request-id", frame.request_id);
  add(head, "request-id", frame.request_id);
  add(head, "X-Content-Type-Options", "nosniff");
  add(head, "Connection", frame.keep_alive ? "keep-alive" : "close");
  for (const std::vector<Field>* fields : {&response.fields, &frame.fields}) {
    for (const Field& field : *fields) {
      add(head, field.name, field.value);
    }
  }
  return head.append("\r\n");
}

std::string as_chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

}  // namespace whimbrel::http
