#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api_error.h"
#include "server/exchange.h"

namespace whimbrel::http {

/// Answers a request, or keeps the exchange and answers later. What it throws becomes the answer
/// (error_of).
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

struct Route {
  std::string method = "GET";
  std::string path = {};  // compared byte by byte: no case, slash or escape is overlooked
  bool needs_key = true;
  /// Run by the thread that serves the connection, so that it answers whatever else goes on; such a
  /// handler never waits.
  bool immediate = false;
  Handler handler = {};
};

/// What a method and a path lead to: a route; or an OPTIONS request, or an error, and no route.
struct RouteMatch {
  const Route* route = nullptr;
  bool is_public = false;                 // some method of the path needs no key
  ErrorShape shape = ErrorShape::openai;  // of the path's errors
  std::string allow = {};  // the path's methods, for the field Allow; empty where it is unknown
  std::optional<ApiError> error = {};
};

class Router {
 public:
  /// Throws std::logic_error on a path without slash, a route without handler and a repeated route.
  explicit Router(std::vector<Route> routes);

  /// HEAD leads to GET's route. OPTIONS on a known path is no error.
  RouteMatch match(std::string_view method, std::string_view path) const;

  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace whimbrel::http
