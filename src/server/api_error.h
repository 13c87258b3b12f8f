#pragma once

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/http_message.h"

namespace whimbrel::http {

enum class ErrorKind {
  bad_request,         // 400
  unauthorized,        // 401
  forbidden,           // 403
  not_found,           // 404
  method_not_allowed,  // 405
  timeout,             // 408
  too_large,           // 413
  target_too_long,     // 414
  unsupported_media,   // 415
  expectation_failed,  // 417
  too_many_requests,   // 429
  header_too_large,    // 431
  internal,            // 500
  bad_gateway,         // 502: the process that answers died
  unavailable,         // 503
};

/// Whose clients read the error: the two APIs spell it in their own way.
enum class ErrorShape { openai, anthropic };

/// By the path of a request, whether it is served or not: Anthropic's at and below /v1/messages.
ErrorShape error_shape_of(std::string_view path);

/// An error for a client. The message is one sentence and holds no path, key or prompt.
struct ApiError {
  ErrorKind kind = ErrorKind::bad_request;
  std::string message = {};
  std::string param = {};               // the field at fault, such as `messages[1].content[0]`
  std::string code = {};                // a word for programs, such as `context_length_exceeded`
  std::optional<int> retry_after = {};  // seconds
  std::vector<Field> fields = {};       // more header fields of the answer
};

/// How a handler, or a check, refuses a request.
class ApiException : public std::runtime_error {
 public:
  explicit ApiException(ApiError error)
      : std::runtime_error(error.message), error_(std::move(error)) {}

  const ApiError& error() const { return error_; }

 private:
  ApiError error_;
};

int status_of(ErrorKind kind);

/// The error's object, as an answer or as an event of a stream:
/// `{"error":{"message","type","param","code"}}`, or Anthropic's
/// `{"type":"error","error":{"type","message"}}`.
Json error_json(const ApiError& error, ErrorShape shape);

Response error_response(const ApiError& error, ErrorShape shape);

/// What a client is told of an exception: an ApiException's error; Fault::usage and Fault::input as
/// bad_request; Fault::memory and Fault::interrupted as unavailable. Of any other it learns nothing
/// but that the server failed.
ApiError error_of(const std::exception& exception);

}  // namespace whimbrel::http
