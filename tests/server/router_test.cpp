#include "server/router.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace whimbrel::http {
namespace {

const Handler kNothing = [](const std::shared_ptr<Exchange>&) {};

Router some_router() {
  return Router({
      {.method = "GET", .path = "/health", .needs_key = false, .handler = kNothing},
      {.method = "GET", .path = "/v1/models", .handler = kNothing},
      {.method = "POST", .path = "/v1/messages", .handler = kNothing},
  });
}

TEST(Router, finds_a_route_by_method_and_exact_path) {
  const Router router = some_router();
  EXPECT_EQ(router.match("GET", "/v1/models").route, &router.routes()[1]);
  EXPECT_EQ(router.match("HEAD", "/v1/models").route, &router.routes()[1]);
  EXPECT_EQ(router.match("POST", "/v1/messages").shape, ErrorShape::anthropic);
  for (const char* path : {"/v1/models/", "//v1/models", "/V1/models", "/v1/%6dodels", "/v1", ""}) {
    const RouteMatch match = router.match("GET", path);
    EXPECT_EQ(match.route, nullptr) << path;
    EXPECT_EQ(match.error->kind, ErrorKind::not_found) << path;
    EXPECT_FALSE(match.is_public) << path;
  }
}

TEST(Router, another_method_is_405_in_the_shape_of_the_path) {
  const RouteMatch match = some_router().match("GET", "/v1/messages");
  EXPECT_EQ(match.error->kind, ErrorKind::method_not_allowed);
  EXPECT_EQ(match.error->fields.at(0).value, "POST, OPTIONS");
  EXPECT_EQ(match.shape, ErrorShape::anthropic);
  EXPECT_EQ(some_router().match("get", "/health").error->kind, ErrorKind::method_not_allowed);
  EXPECT_EQ(some_router().match("HEAD", "/v1/messages").error->kind, ErrorKind::method_not_allowed);
  EXPECT_TRUE(some_router().match("POST", "/health").is_public);
}

TEST(Router, what_is_not_served_is_404_in_the_shape_of_whose_path_it_is) {
  for (const char* path : {"/v1/messages/", "/v1/messages/batches", "/v1/messages/a/b"}) {
    const RouteMatch match = some_router().match("POST", path);
    EXPECT_EQ(match.error->kind, ErrorKind::not_found) << path;
    EXPECT_EQ(match.shape, ErrorShape::anthropic) << path;
  }
  for (const char* path : {"/v1/messages2", "/v1", "/v1/responses", "/V1/messages/a", ""}) {
    EXPECT_EQ(some_router().match("POST", path).shape, ErrorShape::openai) << path;
  }
}

TEST(Router, refuses_routes_that_can_not_be_meant) {
  EXPECT_THROW(Router({{.path = "v1", .handler = kNothing}}), std::logic_error);
  EXPECT_THROW(Router({{.path = "/v1"}}), std::logic_error);
  EXPECT_THROW(
      Router({{.path = "/v1", .handler = kNothing}, {.path = "/v1", .handler = kNothing}}),
      std::logic_error
  );
}

}  // namespace
}  // namespace whimbrel::http
