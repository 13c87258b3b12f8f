#include "server/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace whimbrel::http {

namespace {

void require_sound(const std::vector<Route>& routes) {
  for (const Route& route : routes) {
    const auto is_same = [&route](const Route& other) {
      return other.method == route.method && other.path == route.path;
    };
    if (!route.path.starts_with('/') || !route.handler ||
        std::count_if(routes.begin(), routes.end(), is_same) != 1) {
      throw std::logic_error(
          fmt::format(
              "[router] got the route {} {}, expected a path, a handler and no second such route",
              route.method,
              route.path
          )
      );
    }
  }
}

ApiError not_found() {
  return {
      .kind = ErrorKind::not_found,
      .message = "got a path that isn't served; see /openapi.json for those that are",
      .code = "unknown_url"
  };
}

ApiError method_not_allowed(const std::string& allow) {
  return {
      .kind = ErrorKind::method_not_allowed,
      .message = fmt::format("got a method that this path doesn't have, expected {}", allow),
      .code = "method_not_allowed",
      .fields = {{"Allow", allow}}
  };
}

}  // namespace

Router::Router(std::vector<Route> routes) : routes_(std::move(routes)) {
  require_sound(routes_);
}

RouteMatch Router::match(std::string_view method, std::string_view path) const {
  RouteMatch match{.shape = error_shape_of(path)};
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : routes_) {
    if (route.path != path) {
      continue;
    }
    match.allow += route.method + (route.method == "GET" ? ", HEAD, " : ", ");
    match.is_public = match.is_public || !route.needs_key;
    if (route.method == wanted) {
      match.route = &route;
    }
  }
  if (match.allow.empty()) {
    match.error = not_found();
    return match;
  }
  match.allow += "OPTIONS";
  if (match.route != nullptr) {
    match.is_public = !match.route->needs_key;
  } else if (method != "OPTIONS") {
    match.error = method_not_allowed(match.allow);
  }
  return match;
}

}  // namespace whimbrel::http
