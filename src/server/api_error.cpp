#include "server/api_error.h"

#include "base/error.h"

namespace whimbrel::http {

namespace {

struct KindNames {
  int status = 500;
  const char* openai = "";
  const char* anthropic = "";
};

KindNames names_of(ErrorKind kind) {
  constexpr const char* kInvalid = "invalid_request_error";
  switch (kind) {
    case ErrorKind::bad_request:
      return {400, kInvalid, kInvalid};
    case ErrorKind::unauthorized:
      return {401, "authentication_error", "authentication_error"};
    case ErrorKind::forbidden:
      return {403, "permission_error", "permission_error"};
    case ErrorKind::not_found:
      return {404, kInvalid, "not_found_error"};
    case ErrorKind::method_not_allowed:
      return {405, kInvalid, kInvalid};
    case ErrorKind::timeout:
      return {408, kInvalid, kInvalid};
    case ErrorKind::too_large:
      return {413, kInvalid, "request_too_large"};
    case ErrorKind::target_too_long:
      return {414, kInvalid, kInvalid};
    case ErrorKind::unsupported_media:
      return {415, kInvalid, kInvalid};
    case ErrorKind::expectation_failed:
      return {417, kInvalid, kInvalid};
    case ErrorKind::too_many_requests:
      return {429, "rate_limit_error", "rate_limit_error"};
    case ErrorKind::header_too_large:
      return {431, kInvalid, kInvalid};
    case ErrorKind::internal:
      return {500, "server_error", "api_error"};
    case ErrorKind::bad_gateway:
      return {502, "server_error", "api_error"};
    case ErrorKind::unavailable:
      return {503, "server_error", "overloaded_error"};
  }
  return {};
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace

ErrorShape error_shape_of(std::string_view path) {
  constexpr std::string_view kMessages = "/v1/messages";
  const bool is_below = path.starts_with(kMessages) &&
                        (path.size() == kMessages.size() || path[kMessages.size()] == '/');
  return is_below ? ErrorShape::anthropic : ErrorShape::openai;
}

int status_of(ErrorKind kind) {
  return names_of(kind).status;
}

Json error_json(const ApiError& error, ErrorShape shape) {
  const KindNames names = names_of(error.kind);
  if (shape == ErrorShape::anthropic) {
    return {{"type", "error"}, {"error", {{"type", names.anthropic}, {"message", error.message}}}};
  }
  return {
      {"error",
       {{"message", error.message},
        {"type", names.openai},
        {"param", text_or_null(error.param)},
        {"code", text_or_null(error.code)}}}
  };
}

Response error_response(const ApiError& error, ErrorShape shape) {
  Response response;
  response.status = status_of(error.kind);
  // A message may quote bytes of a request that are no UTF-8.
  response.body = error_json(error, shape).dump(-1, ' ', false, Json::error_handler_t::replace);
  response.fields = error.fields;
  if (error.retry_after) {
    response.fields.push_back({"Retry-After", std::to_string(*error.retry_after)});
  }
  return response;
}

ApiError error_of(const std::exception& exception) {
  if (const auto* api = dynamic_cast<const ApiException*>(&exception)) {
    return api->error();
  }
  const auto* ours = dynamic_cast<const Error*>(&exception);
  if (ours != nullptr && (ours->fault() == Fault::usage || ours->fault() == Fault::input)) {
    return {.kind = ErrorKind::bad_request, .message = ours->what()};
  }
  if (ours != nullptr && ours->fault() == Fault::memory) {
    return {
        .kind = ErrorKind::unavailable,
        .message = "got a request that needs more memory than is free; try again later",
        .retry_after = 1
    };
  }
  if (ours != nullptr && ours->fault() == Fault::interrupted) {
    return {
        .kind = ErrorKind::unavailable,
        .message = "the server stops; try again later",
        .retry_after = 1
    };
  }
  return {
      .kind = ErrorKind::internal,
      .message = "the server failed on this request; its log says more under the x-request-id"
  };
}

}  // namespace whimbrel::http
