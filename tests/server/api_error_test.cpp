#include "server/api_error.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace whimbrel::http {
namespace {

TEST(ApiError, has_the_shape_of_openai) {
  const ApiError error = {
      .kind = ErrorKind::bad_request,
      .message = "too long",
      .param = "messages[1]",
      .code = "context_length_exceeded"
  };
  EXPECT_EQ(
      error_response(error, ErrorShape::openai).body,
      R"({"error":{"message":"too long","type":"invalid_request_error","param":"messages[1]","code":"context_length_exceeded"}})"
  );
  EXPECT_EQ(
      error_response({.kind = ErrorKind::internal, .message = "x"}, ErrorShape::openai).body,
      R"({"error":{"message":"x","type":"server_error","param":null,"code":null}})"
  );
}

TEST(ApiError, has_the_shape_of_anthropic) {
  EXPECT_EQ(
      error_response({.kind = ErrorKind::too_large, .message = "x"}, ErrorShape::anthropic).body,
      R"({"type":"error","error":{"type":"request_too_large","message":"x"}})"
  );
}

TEST(ApiError, each_kind_has_its_status) {
  using enum ErrorKind;
  const std::vector<std::pair<ErrorKind, int>> expected = {
      {bad_request, 400},
      {unauthorized, 401},
      {forbidden, 403},
      {not_found, 404},
      {method_not_allowed, 405},
      {ErrorKind::timeout, 408},
      {too_large, 413},
      {target_too_long, 414},
      {unsupported_media, 415},
      {expectation_failed, 417},
      {too_many_requests, 429},
      {header_too_large, 431},
      {internal, 500},
      {unavailable, 503},
  };
  for (const auto& [kind, status] : expected) {
    EXPECT_EQ(error_response({.kind = kind}, ErrorShape::openai).status, status);
    EXPECT_EQ(status_of(kind), status);
  }
}

TEST(ApiError, retry_after_is_a_field) {
  const Response response =
      error_response({.kind = ErrorKind::too_many_requests, .retry_after = 3}, ErrorShape::openai);
  ASSERT_EQ(response.fields.size(), 1U);
  EXPECT_EQ(response.fields[0].name, "Retry-After");
  EXPECT_EQ(response.fields[0].value, "3");
}

TEST(ApiError, a_message_that_is_no_utf_8_is_still_json) {
  const Response response = error_response({.message = "got \xff\xc3"}, ErrorShape::openai);
  EXPECT_TRUE(Json::accept(response.body));
}

TEST(ApiError, of_an_exception_depends_on_whose_fault_it_is) {
  EXPECT_EQ(error_of(Error(Fault::usage, "a", "b")).kind, ErrorKind::bad_request);
  EXPECT_EQ(error_of(Error(Fault::input, "a", "b")).message, "[a] b");
  EXPECT_EQ(error_of(Error(Fault::memory, "a", "b")).kind, ErrorKind::unavailable);
  EXPECT_EQ(error_of(Error(Fault::interrupted, "a", "b")).kind, ErrorKind::unavailable);
  for (const Fault fault : {Fault::check, Fault::model, Fault::io, Fault::network}) {
    const ApiError error = error_of(Error(fault, "/secret", "b"));
    EXPECT_EQ(error.kind, ErrorKind::internal);
    EXPECT_EQ(error.message.find("secret"), std::string::npos);
  }
  EXPECT_EQ(error_of(std::runtime_error("x")).kind, ErrorKind::internal);
  EXPECT_EQ(error_of(ApiException({.kind = ErrorKind::not_found})).kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace whimbrel::http
