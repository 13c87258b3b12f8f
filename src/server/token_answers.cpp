#include "server/token_answers.h"

#include "server/anthropic_request.h"
#include "server/anthropic_writer.h"
#include "server/chat_prompt.h"
#include "server/token_requests.h"

namespace whimbrel::http {

namespace {

const wire::RequestLimits& limits_of(const ModelService& service) {
  return service.options().limits.request;
}

Json tokenize(const ModelService& service, Exchange& exchange) {
  const wire::TokenizeRequest asked =
      wire::parse_tokenize_request(exchange.take_body(), limits_of(service));
  const Tokenizer& tokenizer = service.frontend().tokenizer;
  const std::vector<int32_t> ids = asked.parse_special
                                       ? tokenizer.encode_prompt({.marked = asked.content})
                                       : tokenizer.encode_text(asked.content);
  return asked.with_pieces ? wire::token_pieces_json(ids, service.token_bytes())
                           : wire::tokens_json(ids);
}

Json detokenize(const ModelService& service, Exchange& exchange) {
  const std::vector<int32_t> ids =
      wire::parse_detokenize_request(exchange.take_body(), limits_of(service));
  return wire::content_json(service.frontend().tokenizer.decode(ids, SpecialTokens::keep));
}

Json apply_template(const ModelService& service, Exchange& exchange) {
  const wire::ChatCompletionRequest asked =
      wire::parse_template_request(exchange.take_body(), limits_of(service));
  exchange.note_ignored(asked.ignored);
  wire::require_model(service.served(), asked.generation.model);
  return wire::prompt_json(service.chat_template().render(chat_without_media(asked).chat).text());
}

Json count_tokens(const ModelService& service, Exchange& exchange) {
  const wire::ChatCompletionRequest asked =
      wire::parse_count_tokens_request(exchange.take_body(), limits_of(service));
  exchange.note_ignored(asked.ignored);
  return wire::token_count_json(chat_prompt(service, asked, exchange).tokens());
}

Json estimate(const ModelService& service, Exchange& exchange) {
  const wire::ChatCompletionRequest asked =
      wire::parse_chat_request(exchange.take_body(), limits_of(service));
  exchange.note_ignored(asked.ignored);
  Prompt prompt = chat_prompt(service, asked, exchange);
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

using JsonOf = Json (*)(const ModelService& service, Exchange& exchange);

void tell(ModelService& service, Exchange& exchange, JsonOf json_of) {
  exchange.respond({.body = wire::dump(json_of(service, exchange))});
}

}  // namespace

void answer_tokenize(ModelService& service, const std::shared_ptr<Exchange>& exchange) {
  tell(service, *exchange, tokenize);
}

void answer_detokenize(ModelService& service, const std::shared_ptr<Exchange>& exchange) {
  tell(service, *exchange, detokenize);
}

void answer_apply_template(ModelService& service, const std::shared_ptr<Exchange>& exchange) {
  tell(service, *exchange, apply_template);
}

void answer_count_tokens(ModelService& service, const std::shared_ptr<Exchange>& exchange) {
  tell(service, *exchange, count_tokens);
}

void answer_estimate(ModelService& service, const std::shared_ptr<Exchange>& exchange) {
  tell(service, *exchange, estimate);
}

}  // namespace whimbrel::http
