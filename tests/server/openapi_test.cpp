#include "server/openapi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/build_info.h"
#include "server/anthropic_request.h"
#include "server/chat_request.h"
#include "server/completion_request.h"
#include "server/front_routes.h"
#include "server/page_routes.h"
#include "server/responses_request.h"
#include "tests/server/auth_surface.h"
#include "tests/server/serve.h"

namespace whimbrel::http::test {

namespace {

using Operations = std::set<std::pair<std::string, std::string>>;

Operations operations_of(const Json& document) {
  Operations operations;
  for (const auto& [path, item] : document.at("paths").items()) {
    for (const auto& [method, operation] : item.items()) {
      operations.emplace(method == "get" ? "GET" : "POST", path);
    }
  }
  return operations;
}

Operations operations_of(const std::vector<Route>& routes) {
  Operations operations;
  for (const Route& route : routes) {
    operations.emplace(route.method, route.path);
  }
  return operations;
}

bool has_placeholder(const Json& json) {
  if (json.is_string()) {
    return json.get_ref<const std::string&>().starts_with('$');
  }
  return json.is_structured() && std::any_of(json.begin(), json.end(), has_placeholder);
}

/// Every `$ref` below.
void collect_references(const Json& json, std::set<std::string>& references) {
  for (const auto& [key, child] : json.items()) {
    if (key == "$ref") {
      references.insert(child.get<std::string>());
    } else if (child.is_structured()) {
      collect_references(child, references);
    }
  }
}

/// All routes of the process that clients reach, with a worker that is never started.
std::vector<Route> served_routes(WorkerSupervisor& worker, const std::string& model) {
  std::vector<Route> routes = front_routes(model, worker, [] { return HttpCounters{}; });
  for (Route& route : page_routes({.model = model})) {
    routes.push_back(std::move(route));
  }
  return routes;
}

}  // namespace

TEST(OpenApi, names_exactly_the_routes_that_are_served) {
  WorkerSupervisor worker({});
  EXPECT_EQ(
      operations_of(openapi_document({.model = "bird/tiny"})),
      operations_of(served_routes(worker, "bird/tiny"))
  );
}

TEST(OpenApi, says_of_each_route_whether_it_needs_a_key) {
  WorkerSupervisor worker({});
  const Json document = openapi_document({.model = "bird"});
  for (const Route& route : served_routes(worker, "bird")) {
    const char* method = route.method == "GET" ? "get" : "post";
    const Json& operation = document.at("paths").at(route.path).at(method);
    EXPECT_EQ(operation.contains("security"), !route.needs_key) << route.path;
    EXPECT_EQ(operation.at("responses").contains("401"), route.needs_key) << route.path;
  }
}

TEST(OpenApi, holds_the_limits_and_the_version) {
  OpenApiFacts facts{.model = "bird"};
  facts.limits.request.choices = 3;
  facts.limits.http.body_bytes = 1234;
  const Json document = openapi_document(facts);
  EXPECT_FALSE(has_placeholder(document));
  EXPECT_EQ(document.at("info").at("version"), build_info().version);
  EXPECT_EQ(document.at("x-limits").at("body_bytes"), 1234);
  EXPECT_EQ(document.at("components").at("schemas").at("Choices").at("maximum"), 3);
}

TEST(OpenApi, refers_to_what_there_is) {
  const Json document = openapi_document({.model = "bird"});
  std::set<std::string> references;
  collect_references(document, references);
  EXPECT_GT(references.size(), 60U);
  for (const std::string& reference : references) {
    EXPECT_TRUE(document.contains(Json::json_pointer(reference.substr(1)))) << reference;
  }
}

TEST(OpenApi, every_operation_says_how_it_fails) {
  const Json document = openapi_document({.model = "bird"});
  for (const auto& [path, item] : document.at("paths").items()) {
    for (const Json& operation : item) {
      for (const char* status : {"200", "400", "403", "408", "413", "415", "431", "500", "503"}) {
        EXPECT_TRUE(operation.at("responses").contains(status)) << path << " " << status;
      }
      EXPECT_FALSE(operation.contains("x-errors")) << path;
    }
  }
}

/// `request` with all fields that the document names beside its own, null.
std::string with_every_field(const char* schema, Json request) {
  const Json document = openapi_document({.model = "bird"});
  for (const auto& [name, field] :
       document.at("components").at("schemas").at(schema).at("properties").items()) {
    if (!request.contains(name)) {
      request[name] = nullptr;
    }
  }
  return request.dump();
}

TEST(OpenApi, names_no_field_that_nobody_reads) {
  using Names = std::vector<std::string>;
  const wire::RequestLimits limits;
  const Json messages = Json::array({{{"role", "user"}, {"content", "Hi"}}});
  const Json ask = {{"messages", messages}};
  const Json message = {{"messages", messages}, {"model", "bird"}, {"max_tokens", 1}};
  EXPECT_EQ(
      wire::parse_chat_request(with_every_field("ChatRequest", ask), limits).ignored, Names{}
  );
  EXPECT_EQ(
      wire::parse_template_request(with_every_field("TemplateRequest", ask), limits).ignored,
      Names{}
  );
  EXPECT_EQ(
      wire::parse_completion_request(
          with_every_field("CompletionRequest", {{"prompt", "Hi"}}), limits
      )
          .ignored,
      Names{}
  );
  EXPECT_EQ(
      wire::parse_responses_request(with_every_field("ResponsesRequest", {{"input", "Hi"}}), limits)
          .chat.ignored,
      Names{}
  );
  EXPECT_EQ(
      wire::parse_messages_request(with_every_field("MessagesRequest", message), limits).ignored,
      Names{}
  );
}

TEST(PageRoutes, are_left_out_of_routes_and_document_without_a_page) {
  const OpenApiFacts facts{.model = "bird", .has_page = false};
  EXPECT_EQ(operations_of(page_routes(facts)), (Operations{{"GET", "/openapi.json"}}));
  EXPECT_FALSE(openapi_document(facts).at("paths").contains("/"));
  EXPECT_FALSE(openapi_document(facts).at("paths").contains("/app.js"));
}

TEST(PageRoutes, the_page_is_public_and_the_document_is_not) {
  HttpServerOptions options;
  options.access.api_keys = {"secret"};
  TestServer server(page_routes({.model = "bird"}), options);
  expect_guarded(server.port(), server->routes(), {"/", "/app.js", "/app.css"}, "secret");
}

TEST(PageRoutes, serve_the_page_with_a_policy_that_lets_nothing_else_in) {
  TestServer server(page_routes({.model = "bird"}));
  for (const char* path : {"/", "/app.js", "/app.css"}) {
    const auto answer = server.get(path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 200) << path;
    const std::string policy = answer->fields.at("content-security-policy");
    EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'self';")) << policy;
    EXPECT_EQ(policy.find("unsafe"), std::string::npos) << policy;
    EXPECT_EQ(answer->fields.at("x-content-type-options"), "nosniff");
  }
  EXPECT_TRUE(server.get("/")->body.starts_with("<!doctype html>"));
}

}  // namespace whimbrel::http::test
