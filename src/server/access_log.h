#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace whimbrel::http {

/// How a request ended. Each one that was begun ends in exactly one of these.
enum class Outcome {
  answered,             // by its handler, to the last byte
  refused,              // before a handler saw it: 4xx or 503
  failed,               // its handler threw or forgot it
  client_left_waiting,  // before its handler began, such as while its body came
  client_left,          // while its handler worked or its answer was sent
  slow_reader,          // given up by us
  stopped,              // the server stopped first
};

std::string_view name_of(Outcome outcome);

/// One line of an access log: no body, no key, no query. Texts of the client are escaped
/// (escape_for_log) and cut.
struct AccessLogEntry {
  std::string request_id = {};
  std::string client = {};
  std::string method = {};
  std::string path = {};
  std::string tenant = {};  // first digits of the key's hash
  int status = 0;           // 0: no answer was begun
  Outcome outcome = Outcome::answered;
  uint64_t body_bytes = 0;
  uint64_t sent_bytes = 0;
  double milliseconds = 0;
  std::string failure = {};               // of an exception that the client was not told about
  std::vector<std::string> ignored = {};  // names of fields that change nothing; a few
};

/// Control characters, backslash and whatever is no ASCII as `\xNN`, at most `longest` bytes of
/// `text`.
std::string escape_for_log(std::string_view text, size_t longest = 256);

/// Numbers of a server since its start.
struct HttpCounters {
  uint64_t connections_accepted = 0;
  uint64_t connections_refused = 0;  // beyond the bound
  uint64_t accept_failures = 0;      // such as too many open files
  uint64_t internal_failures = 0;    // exceptions that ended no more than a connection; a bug
  uint64_t connections_open = 0;
  uint64_t requests_begun = 0;
  uint64_t requests_open = 0;
  uint64_t body_bytes = 0;
  uint64_t sent_bytes = 0;
  std::map<Outcome, uint64_t> requests_by_outcome = {};
  /// By path, where it is a route's, else "other"; and by status.
  std::map<std::pair<std::string, int>, uint64_t> requests_by_route = {};
};

}  // namespace whimbrel::http
