#include "server/routes.h"

#include "server/chat_route.h"
#include "server/info_routes.h"

namespace whimbrel::http {

std::vector<Route> model_routes(ModelService& service) {
  const wire::RequestLimits limits;
  std::vector<Route> routes = info_routes(service);
  routes.push_back({
      .method = "POST",
      .path = "/v1/chat/completions",
      .handler = [&service, limits](std::shared_ptr<Exchange> exchange) {
        answer_chat(service, limits, std::move(exchange));
      },
  });
  return routes;
}

}  // namespace whimbrel::http
