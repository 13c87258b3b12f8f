#include "server/page_routes.h"

#include <string>
#include <string_view>
#include <utility>

#include "server/embedded_files.h"

namespace whimbrel::http {

namespace {

/// The page may load its script, its style and pictures that people put in, and call its server.
/// It makes no HTML of text: `require-trusted-types-for` has the browser refuse that.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

Route answers_with(std::string path, Response response) {
  return {
      .path = std::move(path),
      .immediate = true,
      .handler = [response = std::move(response)](const std::shared_ptr<Exchange>& exchange) {
        exchange->respond(response);
      },
  };
}

Route page_file(std::string path, std::string content_type, std::string_view content) {
  Response response{.content_type = std::move(content_type), .body = std::string(content)};
  response.fields = {
      {"Content-Security-Policy", kPolicy},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cache-Control", "no-cache"},
  };
  Route route = answers_with(std::move(path), std::move(response));
  route.needs_key = false;
  return route;
}

}  // namespace

std::vector<Route> page_routes(const OpenApiFacts& facts) {
  std::vector<Route> routes = {
      answers_with("/openapi.json", {.body = openapi_document(facts).dump()})
  };
  if (facts.has_page) {
    routes.push_back(page_file("/", "text/html; charset=utf-8", page_html));
    routes.push_back(page_file("/app.js", "text/javascript; charset=utf-8", page_script));
    routes.push_back(page_file("/app.css", "text/css; charset=utf-8", page_style));
  }
  return routes;
}

}  // namespace whimbrel::http
