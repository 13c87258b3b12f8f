// Any bytes as a request, whole and byte by byte. Both ways agree; a head that both we and
// Boost.Beast accept means the same to both; and what is logged of it is one line.

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "server/access_log.h"
#include "server/body_reader.h"
#include "server/request_head.h"

namespace {

namespace beast = boost::beast;
using whimbrel::http::HeadScanner;
using whimbrel::http::HttpLimits;
using whimbrel::http::RequestHead;

const HttpLimits kLimits = {.body_bytes = 4096};

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

/// The head's size; nullopt where there is none or it is refused.
std::optional<size_t> scan(std::string_view input, size_t step) {
  HeadScanner scanner(kLimits);
  try {
    for (size_t end = step; end < input.size(); end += step) {
      if (const std::optional<size_t> size = scanner.scan(input.substr(0, end))) {
        return size;
      }
    }
    return scanner.scan(input);
  } catch (const whimbrel::http::ApiException&) {
    return std::nullopt;
  }
}

void require_same_to_beast(const RequestHead& head, std::string_view bytes) {
  beast::http::request_parser<beast::http::string_body> parser;
  parser.header_limit(1 << 20);
  parser.body_limit(boost::none);
  beast::error_code error;
  parser.put({bytes.data(), bytes.size()}, error);
  if (!parser.is_header_done()) {
    return;  // Beast reads the framing of bodies, so such a request is refused behind its head
  }
  const auto& request = parser.get();
  const std::string query = head.query.empty() ? "" : "?" + head.query;
  require(request.method_string() == head.method);
  require(request.target() == head.path + query || request.target() == head.path + "?");
  require(request.version() == (head.is_http_1_0 ? 10 : 11));
  require(parser.chunked() == head.chunked);
  require(parser.content_length().value_or(0) == head.content_length.value_or(0));
  std::multiset<std::pair<std::string, std::string>> theirs;  // which puts like names together
  for (const auto& field : request) {
    theirs.emplace(whimbrel::http::lower_case(field.name_string()), field.value());
  }
  std::multiset<std::pair<std::string, std::string>> ours;
  for (const whimbrel::http::Field& field : head.fields) {
    ours.emplace(field.name, field.value);
  }
  require(theirs == ours);
}

void require_one_line(const RequestHead& head) {
  for (const std::string& text : {head.method, head.path}) {
    const std::string line = whimbrel::http::escape_for_log(text);
    require(line.find_first_of("\r\n\x1b") == std::string::npos);
  }
}

/// The body where it is whole, its framing taken in pieces of `step` bytes.
std::optional<std::string> read_body(std::string_view head, std::string_view input, size_t step) {
  try {
    whimbrel::http::BodyReader body(head, kLimits);
    std::string waiting;
    for (size_t begin = 0; !body.done() && begin < input.size(); begin += step) {
      waiting += input.substr(begin, step);
      waiting.erase(0, body.put(waiting));
    }
    require(body.size() <= kLimits.body_bytes);
    return body.done() ? std::optional(body.take()) : std::nullopt;
  } catch (const whimbrel::http::ApiException&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::optional<size_t> end = scan(input, input.size() + 1);
  require(scan(input, 1) == end);
  if (!end) {
    return 0;
  }
  const std::string_view bytes = input.substr(0, *end);
  try {
    const RequestHead head = whimbrel::http::parse_request_head(bytes, kLimits);
    require_same_to_beast(head, bytes);
    require_one_line(head);
    if (head.chunked || head.content_length.value_or(0) > 0) {
      const std::string_view rest = input.substr(*end);
      require(read_body(bytes, rest, rest.size() + 1) == read_body(bytes, rest, 1));
    }
  } catch (const whimbrel::http::ApiException&) {
  }
  return 0;
}
