#include "server/token_routes.h"

#include "server/anthropic_request.h"
#include "server/anthropic_writer.h"
#include "server/chat_prompt.h"
#include "server/token_requests.h"

namespace whimbrel::http {

namespace {

using JsonOf =
    Json (*)(const ModelService& service, std::string_view body, const wire::RequestLimits& limits);

Route tells(
    std::string path, ModelService& service, const wire::RequestLimits& limits, JsonOf json_of
) {
  return {
      .method = "POST",
      .path = std::move(path),
      .handler = [&service, limits, json_of](const std::shared_ptr<Exchange>& exchange) {
        const Json json = json_of(service, exchange->request().body, limits);
        exchange->respond({.body = wire::dump(json)});
      },
  };
}

Json tokenize(
    const ModelService& service, std::string_view body, const wire::RequestLimits& limits
) {
  const wire::TokenizeRequest asked = wire::parse_tokenize_request(body, limits);
  const Tokenizer& tokenizer = service.frontend().tokenizer;
  const std::vector<int32_t> ids = asked.parse_special
                                       ? tokenizer.encode_prompt({.marked = asked.content})
                                       : tokenizer.encode_text(asked.content);
  return asked.with_pieces ? wire::token_pieces_json(ids, service.token_bytes())
                           : wire::tokens_json(ids);
}

Json detokenize(
    const ModelService& service, std::string_view body, const wire::RequestLimits& limits
) {
  const std::vector<int32_t> ids = wire::parse_detokenize_request(body, limits);
  return wire::content_json(service.frontend().tokenizer.decode(ids, SpecialTokens::keep));
}

Json apply_template(
    const ModelService& service, std::string_view body, const wire::RequestLimits& limits
) {
  const wire::ChatCompletionRequest asked = wire::parse_template_request(body, limits);
  wire::require_model(service.served(), asked.generation.model);
  return wire::prompt_json(service.chat_template().render(chat_of(asked).chat).text());
}

Json count_tokens(
    const ModelService& service, std::string_view body, const wire::RequestLimits& limits
) {
  const wire::ChatCompletionRequest asked = wire::parse_count_tokens_request(body, limits);
  return wire::token_count_json(chat_prompt(service, asked).tokens());
}

Json estimate(
    const ModelService& service, std::string_view body, const wire::RequestLimits& limits
) {
  const wire::ChatCompletionRequest asked = wire::parse_chat_request(body, limits);
  Prompt prompt = chat_prompt(service, asked);
  Json media = media_json(prompt);
  const int tokens = prompt.tokens();
  const whimbrel::Request request = service.request(std::move(prompt), asked.generation);
  return {
      {"prompt_tokens", tokens},
      {"max_tokens", request.max_tokens},
      {"context", service.options().serving.context},
      {"memory_bytes", service.serving().bytes_of(request)},
      {"memory_budget", service.options().serving.memory},
      {"media", std::move(media)},
  };
}

}  // namespace

std::vector<Route> token_routes(ModelService& service, const wire::RequestLimits& limits) {
  std::vector<Route> routes = {
      tells("/tokenize", service, limits, tokenize),
      tells("/detokenize", service, limits, detokenize),
      tells("/apply-template", service, limits, apply_template),
      tells("/v1/messages/count_tokens", service, limits, count_tokens),
      tells("/v1/estimate", service, limits, estimate),
  };
  routes[3].shape = ErrorShape::anthropic;
  return routes;
}

}  // namespace whimbrel::http
