#include "server/access.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/digest.h"
#include "base/error.h"
#include "base/json.h"
#include "tests/server/auth_surface.h"
#include "tests/server/serve.h"

namespace whimbrel::http::test {
namespace {

Request with(std::vector<Field> fields) {
  Request request;
  request.fields = std::move(fields);
  return request;
}

TEST(Access, other_machines_need_a_key_unless_that_is_waived) {
  EXPECT_THROW(Access({}, false), Error);
  EXPECT_NO_THROW(Access({}, true));
  EXPECT_NO_THROW(Access({.api_keys = {"a"}}, false));
  EXPECT_NO_THROW(Access({.insecure_no_auth = true}, false));
  EXPECT_THROW(Access({.api_keys = {"a", ""}}, true), Error);
}

TEST(Access, a_tenant_is_the_hash_of_its_key) {
  const Access access({.api_keys = {"one", "two"}}, true);
  const std::string two = Digest().update("two").hex();
  EXPECT_EQ(access.tenant_of(with({{"authorization", "Bearer two"}})), two);
  EXPECT_EQ(access.tenant_of(with({{"authorization", "bEARER  two"}})), two);
  EXPECT_EQ(access.tenant_of(with({{"x-api-key", "two"}})), two);
  EXPECT_EQ(access.tenant_of(with({{"x-api-key", "two"}, {"authorization", "Bearer two"}})), two);
  EXPECT_EQ(
      access.tenant_of(with({{"x-api-key", "one"}, {"authorization", "Bearer two"}})), std::nullopt
  );
  EXPECT_NE(access.tenant_of(with({{"x-api-key", "one"}})), two);
  EXPECT_EQ(access.tenant_of(with({{"x-api-key", two}})), std::nullopt);
  EXPECT_EQ(access.tenant_of(with({})), std::nullopt);
  EXPECT_EQ(Access({}, true).tenant_of(with({{"x-api-key", "any"}})), "");
}

TEST(AuthSurface, every_path_in_every_spelling_by_every_method_needs_the_key) {
  Route health = public_route("GET", "/health", answer("{}"));
  health.immediate = true;
  const std::vector<Route> routes = {
      health,
      public_route("GET", "/", answer("{}")),
      {.method = "GET", .path = "/metrics", .immediate = true, .handler = answer("{}")},
      {.method = "GET", .path = "/v1/models", .handler = answer("{}")},
      {.method = "POST", .path = "/v1/chat/completions", .handler = answer("{}")},
      {.method = "POST", .path = "/v1/messages", .handler = answer("{}")},
  };
  TestServer server(routes, {.access = {.api_keys = {"secret-key"}}});
  expect_guarded(server.port(), server->routes(), {"/", "/health"}, "secret-key");
  const auto messages = request_once(server.port(), ask("POST", "/v1/messages"));
  EXPECT_EQ(Json::parse(messages->body)["error"]["type"], "authentication_error");
  EXPECT_EQ(messages->fields.at("www-authenticate"), "Bearer");
}

TEST(ForeignHost, is_403_on_the_loopback) {
  TestServer server({public_route("GET", "/", answer("{}"))});
  const auto status = [&](const std::string& host) {
    return request_once(server.port(), "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n")->status;
  };
  for (const char* host :
       {"localhost", "localhost:1", "127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST"}) {
    EXPECT_EQ(status(host), 200) << host;
  }
  for (const char* host :
       {"evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "[::1",
        "localhost.",
        "a@localhost",
        "localhost,evil.example",
        "::1"}) {
    EXPECT_EQ(status(host), 403) << host;
  }
  const auto messages =
      request_once(server.port(), "POST /v1/messages HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_EQ(Json::parse(messages->body)["error"]["type"], "permission_error");
  EXPECT_EQ(Json::parse(messages->body)["type"], "error");
  TestServer named(
      {public_route("GET", "/", answer("{}"))}, {.access = {.allowed_hosts = {"model.example"}}}
  );
  EXPECT_EQ(
      request_once(named.port(), "GET / HTTP/1.1\r\nHost: model.example:443\r\n\r\n")->status, 200
  );
  EXPECT_EQ(request_once(named.port(), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")->status, 403);
}

TEST(ForeignPage, is_403_and_its_request_never_handled) {
  std::atomic<int> handled = 0;
  const auto count = [&](const ExchangePtr& exchange) {
    ++handled;
    exchange->respond({});
  };
  TestServer server({public_route("GET", "/", count), public_route("POST", "/", count)});
  for (const char* origin :
       {"https://evil.example",
        "null",
        "http://localhost.evil.example",
        "http://localhost:1",
        "",
        "file://",
        "https://localhost@evil.example"}) {
    const std::string field = fmt::format("Origin: {}\r\n", origin);
    for (const std::string& request :
         {ask("GET", "/", field),
          post("/", "{}", field),
          ask("OPTIONS", "/", field + "Access-Control-Request-Method: POST\r\n"),
          ask("GET",
              "/",
              field + "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n"),
          ask("POST", "/", field + "Content-Type: text/plain\r\nContent-Length: 2\r\n") + "{}"}) {
      const auto got = request_once(server.port(), request);
      EXPECT_EQ(got->status, 403) << request;
      EXPECT_FALSE(got->fields.contains("access-control-allow-origin"));
    }
  }
  EXPECT_EQ(handled, 0);
  EXPECT_EQ(server.get("/", "Origin: http://localhost\r\n")->status, 200)
      << "the server's own page";
}

TEST(AllowedPage, may_ask_first_without_a_key_and_read_the_answer) {
  TestServer server(
      {{.method = "POST", .path = "/v1/x", .handler = answer("{}")}},
      {.access = {.api_keys = {"k"}, .allowed_origins = {"https://app.example"}}}
  );
  const std::string origin = "Origin: https://app.example\r\n";
  const auto leave = request_once(
      server.port(),
      ask("OPTIONS",
          "/v1/x",
          origin + "Access-Control-Request-Method: POST\r\n"
                   "Access-Control-Request-Headers: authorization,x-stainless-os\r\n")
  );
  EXPECT_EQ(leave->status, 204);
  EXPECT_EQ(leave->fields.at("access-control-allow-origin"), "https://app.example");
  EXPECT_EQ(leave->fields.at("access-control-allow-headers"), "authorization,x-stainless-os");
  EXPECT_EQ(leave->fields.at("vary"), "Origin");
  const auto got = request_once(server.port(), post("/v1/x", "{}", origin + "x-api-key: k\r\n"));
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->fields.at("access-control-allow-origin"), "https://app.example");
  const auto without = request_once(server.port(), post("/v1/x", "{}", origin));
  EXPECT_EQ(without->status, 401);
  EXPECT_EQ(without->fields.at("access-control-allow-origin"), "https://app.example");
}

}  // namespace
}  // namespace whimbrel::http::test
