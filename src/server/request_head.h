#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api_error.h"
#include "server/http_limits.h"
#include "server/http_message.h"

namespace whimbrel::http {

/// Request line and header fields, in the one form that no two programs read differently.
struct RequestHead {
  std::string method = {};
  std::string path = {};
  std::string query = {};
  std::vector<Field> fields = {};
  bool is_http_1_0 = false;
  std::optional<uint64_t> content_length = {};
  bool chunked = false;
  bool keep_alive = true;
  bool expects_continue = false;
};

/// Finds the end of a head in bytes that come in pieces.
class HeadScanner {
 public:
  explicit HeadScanner(const HttpLimits& limits)
      : header_bytes_(limits.header_bytes), target_bytes_(limits.target_bytes) {}

  /// `bytes`: all that came so far, of which only what is new is read. Returns the head's size, the
  /// empty line included, once it is there. Throws ApiException as soon as a byte is seen that no
  /// head holds (a control character, a line end that isn't CRLF), or a limit is passed.
  std::optional<size_t> scan(std::string_view bytes);

 private:
  void require_within_limits(std::string_view bytes) const;

  size_t header_bytes_ = 0;
  size_t target_bytes_ = 0;
  size_t scanned_ = 0;
  size_t line_begin_ = 0;
  bool in_request_line_ = true;
};

/// Reads a head that a HeadScanner found, RFC 9112's grammar without what it allows for old
/// programs. Throws ApiException: target_too_long, header_too_large (too many fields),
/// unsupported_media (Content-Encoding), expectation_failed, or bad_request for all else: a length
/// that is no plain number, a transfer coding other than `chunked`, both, a folded line, a space
/// before a colon, a field that may come once and comes twice.
RequestHead parse_request_head(std::string_view head, const HttpLimits& limits);

}  // namespace whimbrel::http
