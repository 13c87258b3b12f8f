#include "server/routes.h"

#include "server/answers.h"
#include "server/info_routes.h"
#include "server/token_routes.h"

namespace whimbrel::http {

namespace {

using Answerer = void (*)(ModelService&, const wire::RequestLimits&, std::shared_ptr<Exchange>);

Route answers(
    std::string path,
    ModelService& service,
    Answerer answerer,
    ErrorShape shape = ErrorShape::openai
) {
  return {
      .method = "POST",
      .path = std::move(path),
      .shape = shape,
      .handler = [&service, answerer](std::shared_ptr<Exchange> exchange) {
        answerer(service, wire::RequestLimits{}, std::move(exchange));
      },
  };
}

}  // namespace

std::vector<Route> model_routes(
    ModelService& service, const std::function<HttpCounters()>& counters
) {
  std::vector<Route> routes = {
      answers("/v1/chat/completions", service, answer_chat),
      answers("/v1/completions", service, answer_completion),
      answers("/v1/responses", service, answer_response),
      answers("/v1/messages", service, answer_message, ErrorShape::anthropic),
  };
  for (Route& route : token_routes(service, wire::RequestLimits{})) {
    routes.push_back(std::move(route));
  }
  for (Route& route : info_routes(service, counters)) {
    routes.push_back(std::move(route));
  }
  return routes;
}

}  // namespace whimbrel::http
