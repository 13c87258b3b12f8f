#include "server/model_routes.h"

#include <utility>

#include "server/answers.h"
#include "server/info_answers.h"
#include "server/token_answers.h"

namespace whimbrel::http {

std::vector<ModelRoute> model_routes(const std::string& model_name) {
  return {
      {"POST", "/v1/chat/completions", answer_chat},
      {"POST", "/v1/completions", answer_completion},
      {"POST", "/v1/responses", answer_response},
      {"POST", "/v1/messages", answer_message},
      {"POST", "/v1/messages/count_tokens", answer_count_tokens},
      {"POST", "/v1/estimate", answer_estimate},
      {"POST", "/tokenize", answer_tokenize},
      {"POST", "/detokenize", answer_detokenize},
      {"POST", "/apply-template", answer_apply_template},
      {.method = "GET", .path = "/v1/models", .answer = answer_models, .immediate = true},
      {.method = "GET",
       .path = "/v1/models/" + model_name,
       .answer = answer_model,
       .immediate = true},
      {.method = "GET", .path = "/props", .answer = answer_props, .immediate = true},
      {.method = "GET", .path = "/slots", .answer = answer_slots, .immediate = true},
  };
}

std::vector<Route> worker_routes(ModelService& service) {
  std::vector<Route> routes;
  for (ModelRoute& asked : model_routes(service.name())) {
    routes.push_back({
        .method = std::move(asked.method),
        .path = std::move(asked.path),
        .immediate = asked.immediate,
        .handler = [&service, answer = asked.answer](const std::shared_ptr<Exchange>& exchange) {
          answer(service, exchange);
        },
    });
  }
  return routes;
}

}  // namespace whimbrel::http
