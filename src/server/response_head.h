#pragma once

#include <string>
#include <vector>

#include "server/http_message.h"

namespace whimbrel::http {

/// How the client finds the end of an answer.
enum class Framing { length, chunked, until_close, no_body };

/// What the connection adds to an answer.
struct AnswerFrame {
  Framing framing = Framing::length;
  bool keep_alive = true;
  std::string request_id = {};
  std::vector<Field> fields = {};  // CORS
};

/// Status line and header fields. Throws std::logic_error where a field would end its line.
std::string response_head(const Response& response, const AnswerFrame& frame);

/// `bytes`, not empty, as one chunk.
std::string as_chunk(std::string_view bytes);

inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace whimbrel::http
