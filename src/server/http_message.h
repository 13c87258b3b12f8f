#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace whimbrel::http {

/// One header field. Names of a request are in lower case.
struct Field {
  std::string name = {};
  std::string value = {};
};

/// A request that passed all checks of HTTP, access and routing.
struct Request {
  std::string method = {};
  std::string path = {};   // as sent: nothing is decoded
  std::string query = {};  // behind the first '?'
  std::vector<Field> fields = {};
  std::string body = {};
  std::string request_id = {};  // the client's x-request-id where it is fit for a log, else ours
  std::string client = {};      // address and port
  std::string tenant = {};      // SHA-256 of the API key in hex; empty where the server has no keys

  /// The value of the first field of that name (in lower case), or nullptr.
  const std::string* find(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<Field> fields = {};
  std::string failure = {};  // for the log: why the server failed, which the client isn't told
  std::vector<std::string> ignored = {};  // for the log: see Exchange::note_ignored
};

/// The head of an answer that comes in pieces.
struct StreamHead {
  std::string content_type = "text/event-stream";
  std::vector<Field> fields = {};
  std::vector<std::string> ignored = {};  // as Response's
};

/// Equal but for the case of ASCII letters.
bool equal_ignoring_case(std::string_view a, std::string_view b);

std::string lower_case(std::string_view text);

}  // namespace whimbrel::http
