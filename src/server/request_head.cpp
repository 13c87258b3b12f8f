#include "server/request_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace whimbrel::http {

namespace {

constexpr std::string_view kEndOfLine = "\r\n";
constexpr size_t kLongestMethod = 32;
constexpr size_t kMostLengthDigits = 18;  // of any number that 64 bits hold

/// Fields that change what a request means, or who sends it: two of them could be read as either.
constexpr std::array<std::string_view, 9> kSingleFields = {
    "host",
    "content-length",
    "transfer-encoding",
    "content-type",
    "content-encoding",
    "authorization",
    "x-api-key",
    "origin",
    "expect"
};

template <typename... Args>
[[noreturn]] void refuse(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  throw ApiException(
      {.kind = kind,
       .message = fmt::format(text, std::forward<Args>(args)...),
       .code = "bad_http_request"}
  );
}

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  refuse(ErrorKind::bad_request, text, std::forward<Args>(args)...);
}

bool is_token_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// Takes the first line off `text`.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find(kEndOfLine);
  if (end == std::string_view::npos) {
    refuse("got a head that ends inside a line");
  }
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + kEndOfLine.size());
  return line;
}

void parse_target(std::string_view target, const HttpLimits& limits, RequestHead& head) {
  if (target.size() > limits.target_bytes) {
    refuse(ErrorKind::target_too_long, "got a target of more than {} bytes", limits.target_bytes);
  }
  const auto is_allowed = [](char c) { return c > ' ' && c < 0x7f && c != '#'; };
  if (!target.starts_with('/') || !std::all_of(target.begin(), target.end(), is_allowed)) {
    refuse("got a target that isn't a path, expected one like /v1/models");
  }
  const size_t question = target.find('?');
  head.path = target.substr(0, question);
  if (question != std::string_view::npos) {
    head.query = target.substr(question + 1);
  }
}

void parse_request_line(std::string_view line, const HttpLimits& limits, RequestHead& head) {
  const size_t first = line.find(' ');
  const size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos) {
    refuse("got a request line that isn't METHOD TARGET VERSION with single spaces");
  }
  head.method = line.substr(0, first);
  if (!is_token(head.method) || head.method.size() > kLongestMethod) {
    refuse("got a request line that doesn't begin with a method");
  }
  const std::string_view version = line.substr(second + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    refuse("got another version than HTTP/1.1 and HTTP/1.0");
  }
  head.is_http_1_0 = version == "HTTP/1.0";
  parse_target(line.substr(first + 1, second - first - 1), limits, head);
}

Field parse_field(std::string_view line) {
  if (line.starts_with(' ') || line.starts_with('\t')) {
    refuse("got a header field folded over two lines, expected it on one");
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    refuse("got a header line that isn't NAME: VALUE");
  }
  const std::string_view value = trim(line.substr(colon + 1));
  if (std::any_of(value.begin(), value.end(), is_control)) {
    refuse("got a control character in a header field");
  }
  return {lower_case(line.substr(0, colon)), std::string(value)};
}

void parse_fields(std::string_view lines, const HttpLimits& limits, RequestHead& head) {
  for (std::string_view line = take_line(lines); !line.empty(); line = take_line(lines)) {
    if (head.fields.size() >= static_cast<size_t>(limits.header_fields)) {
      refuse(ErrorKind::header_too_large, "got more than {} header fields", limits.header_fields);
    }
    head.fields.push_back(parse_field(line));
  }
  if (!lines.empty()) {
    refuse("got bytes behind the empty line of a head");
  }
}

const std::string* find_single(const RequestHead& head, std::string_view name) {
  const std::string* found = nullptr;
  for (const Field& field : head.fields) {
    if (field.name != name) {
      continue;
    }
    if (found != nullptr) {
      refuse("got the header field {} twice, expected it once", name);
    }
    found = &field.value;
  }
  return found;
}

uint64_t parse_length(const std::string& text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || text.size() > kMostLengthDigits ||
      !std::all_of(text.begin(), text.end(), is_digit)) {
    refuse("got a Content-Length that isn't a plain number");
  }
  uint64_t length = 0;
  std::from_chars(text.data(), text.data() + text.size(), length);
  return length;
}

/// How the body is framed: the place where two programs that disagree let a second request in.
void settle_framing(RequestHead& head) {
  if (const std::string* length = find_single(head, "content-length")) {
    head.content_length = parse_length(*length);
  }
  const std::string* coding = find_single(head, "transfer-encoding");
  if (coding == nullptr) {
    return;
  }
  if (head.content_length) {
    refuse("got both Content-Length and Transfer-Encoding, expected one");
  }
  if (head.is_http_1_0) {
    refuse("got Transfer-Encoding in a request of HTTP/1.0");
  }
  if (!equal_ignoring_case(*coding, "chunked")) {
    refuse("got another Transfer-Encoding than chunked");
  }
  head.chunked = true;
}

void settle_connection(RequestHead& head) {
  bool close = false;
  bool keep_alive = false;
  for (const Field& field : head.fields) {
    std::string_view rest = field.name == "connection" ? field.value : std::string_view();
    while (!rest.empty()) {
      const size_t comma = rest.find(',');
      const std::string_view option = trim(rest.substr(0, comma));
      if (!is_token(option)) {
        refuse("got a Connection that isn't a list of words");
      }
      close = close || equal_ignoring_case(option, "close");
      keep_alive = keep_alive || equal_ignoring_case(option, "keep-alive");
      rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    }
  }
  head.keep_alive = !close && (keep_alive || !head.is_http_1_0);
}

void settle_expectation(RequestHead& head) {
  const std::string* expect = find_single(head, "expect");
  if (expect == nullptr) {
    return;
  }
  if (!equal_ignoring_case(*expect, "100-continue")) {
    refuse(ErrorKind::expectation_failed, "got another Expect than 100-continue");
  }
  head.expects_continue = !head.is_http_1_0;
}

void require_sound_fields(const RequestHead& head) {
  for (const std::string_view name : kSingleFields) {
    find_single(head, name);
  }
  const std::string* host = find_single(head, "host");
  if (host == nullptr ? !head.is_http_1_0 : host->empty()) {
    refuse("got no Host, expected the server's name");
  }
  if (find_single(head, "content-encoding") != nullptr) {
    refuse(
        ErrorKind::unsupported_media, "got a body with a Content-Encoding, expected it uncompressed"
    );
  }
}

}  // namespace

void HeadScanner::require_within_limits(std::string_view bytes) const {
  if (in_request_line_) {
    // Whatever the method and version, the target alone is longer.
    const size_t space = bytes.find(' ');
    if (space < bytes.size() && bytes.size() - space > target_bytes_ + 16) {
      refuse(ErrorKind::target_too_long, "got a target of more than {} bytes", target_bytes_);
    }
  }
  if (bytes.size() > header_bytes_) {
    refuse(ErrorKind::header_too_large, "got a header of more than {} bytes", header_bytes_);
  }
}

std::optional<size_t> HeadScanner::scan(std::string_view bytes) {
  // The bytes behind the head, where they came with it, are none of its limits' matter.
  for (; scanned_ < std::min(bytes.size(), header_bytes_); ++scanned_) {
    const char c = bytes[scanned_];
    const bool behind_cr = scanned_ > 0 && bytes[scanned_ - 1] == '\r';
    if (behind_cr != (c == '\n')) {
      refuse("got a line that doesn't end with CR LF");
    }
    if (is_control(c) && c != '\r' && c != '\n') {
      refuse("got a control character in the header");
    }
    if (c != '\n') {
      continue;
    }
    if (scanned_ + 1 - line_begin_ == kEndOfLine.size()) {
      if (in_request_line_) {
        refuse("got an empty line, expected a request");
      }
      return ++scanned_;
    }
    line_begin_ = scanned_ + 1;
    in_request_line_ = false;
  }
  require_within_limits(bytes);
  return std::nullopt;
}

RequestHead parse_request_head(std::string_view head_bytes, const HttpLimits& limits) {
  RequestHead head;
  parse_request_line(take_line(head_bytes), limits, head);
  parse_fields(head_bytes, limits, head);
  require_sound_fields(head);
  settle_framing(head);
  settle_connection(head);
  settle_expectation(head);
  return head;
}

}  // namespace whimbrel::http
