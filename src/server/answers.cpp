#include "server/answers.h"

#include <utility>
#include <variant>
#include <vector>

#include "base/build_info.h"
#include "base/clock.h"
#include "engine/prepare.h"
#include "server/anthropic_request.h"
#include "server/anthropic_writer.h"
#include "server/chat_prompt.h"
#include "server/chat_writer.h"
#include "server/completion_request.h"
#include "server/completion_writer.h"
#include "server/delivery.h"
#include "server/responses_request.h"
#include "server/responses_writer.h"

namespace whimbrel::http {

namespace {

std::string fingerprint() {
  return "whimbrel-" + build_info().commit.substr(0, 12);
}

std::string numbered(std::string_view kind, const Exchange& exchange) {
  return std::string(kind) + exchange.request().request_id;
}

std::vector<whimbrel::Request> only(whimbrel::Request request) {
  std::vector<whimbrel::Request> requests;
  requests.push_back(std::move(request));
  return requests;
}

template <typename Writer>
void stream(
    ModelService& service,
    std::shared_ptr<Exchange> exchange,
    Writer writer,
    std::vector<whimbrel::Request> requests
) {
  std::make_shared<StreamDelivery<Writer>>(std::move(exchange), std::move(writer))
      ->begin(service, std::move(requests));
}

template <typename Writer>
void answer_whole(
    ModelService& service,
    std::shared_ptr<Exchange> exchange,
    Writer writer,
    std::vector<whimbrel::Request> requests
) {
  std::make_shared<WholeDelivery<Writer>>(std::move(exchange), std::move(writer))
      ->begin(service, std::move(requests));
}

Prompt text_prompt(const ModelService& service, const wire::TextPrompt& prompt) {
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    service.require_short(text->size());
    return prepare_text(service.frontend(), *text);
  }
  return prepare_ids(service.frontend(), std::get<std::vector<int32_t>>(prompt));
}

std::vector<whimbrel::Request> requests_of(
    const ModelService& service, const wire::CompletionRequest& asked, const std::string& scope
) {
  std::vector<whimbrel::Request> requests;
  for (const wire::TextPrompt& prompt : asked.prompts) {
    requests.push_back(service.request(text_prompt(service, prompt), asked.generation));
    requests.back().scope = scope;
    requests.back().top_logprobs = asked.logprobs;
  }
  return requests;
}

wire::CompletionInfo completion_info(
    const ModelService& service, const wire::CompletionRequest& asked, const Exchange& exchange
) {
  wire::CompletionInfo info{.id = numbered("cmpl-", exchange), .created = seconds_since_1970()};
  info.model = service.name();
  info.fingerprint = fingerprint();
  info.prompts = static_cast<int>(asked.prompts.size());
  info.choices = asked.generation.choices;
  info.logprobs = asked.logprobs;
  info.include_usage = asked.generation.include_usage;
  for (const wire::TextPrompt& prompt : asked.prompts) {
    if (asked.echo) {
      const auto* text = std::get_if<std::string>(&prompt);
      info.echo.push_back(
          text != nullptr ? *text
                          : service.frontend().tokenizer.decode(
                                std::get<std::vector<int32_t>>(prompt), SpecialTokens::keep
                            )
      );
    }
  }
  return info;
}

wire::ChatAnswerInfo chat_info(
    const ModelService& service,
    const wire::ChatCompletionRequest& asked,
    const PreparedChat& chat,
    const Exchange& exchange
) {
  wire::ChatAnswerInfo info{.id = numbered("chatcmpl-", exchange), .created = seconds_since_1970()};
  info.model = service.name();
  info.fingerprint = fingerprint();
  info.choices = asked.generation.choices;
  info.form = chat.form;
  info.logprobs = asked.logprobs;
  info.include_usage = asked.generation.include_usage;
  info.return_progress = asked.generation.return_progress;
  info.image_tokens = chat.image_tokens;
  info.whimbrel = chat.details;
  info.boxes = chat.boxes;
  return info;
}

}  // namespace

void answer_chat(ModelService& service, const std::shared_ptr<Exchange>& exchange) {
  require_room(service);
  const wire::ChatCompletionRequest asked =
      wire::parse_chat_request(exchange->take_body(), service.options().limits.request);
  exchange->note_ignored(asked.ignored);
  PreparedChat chat = prepare_chat_request(service, asked, *exchange);
  wire::ChatAnswerInfo info = chat_info(service, asked, chat, *exchange);
  std::vector<whimbrel::Request> requests = only(std::move(chat.request));
  if (asked.generation.stream) {
    wire::ChatStream writer(std::move(info), service.token_bytes());
    stream(service, exchange, std::move(writer), std::move(requests));
  } else {
    wire::ChatAnswer writer(std::move(info), service.token_bytes());
    answer_whole(service, exchange, std::move(writer), std::move(requests));
  }
}

void answer_completion(ModelService& service, const std::shared_ptr<Exchange>& exchange) {
  require_room(service);
  const wire::CompletionRequest asked =
      wire::parse_completion_request(exchange->take_body(), service.options().limits.request);
  exchange->note_ignored(asked.ignored);
  wire::require_model(service.served(), asked.generation.model);
  std::vector<whimbrel::Request> requests = requests_of(service, asked, exchange->request().tenant);
  wire::CompletionInfo info = completion_info(service, asked, *exchange);
  if (asked.generation.stream) {
    wire::CompletionStream writer(std::move(info), service.token_bytes());
    stream(service, exchange, std::move(writer), std::move(requests));
  } else {
    wire::CompletionAnswer writer(std::move(info), service.token_bytes());
    answer_whole(service, exchange, std::move(writer), std::move(requests));
  }
}

void answer_message(ModelService& service, const std::shared_ptr<Exchange>& exchange) {
  require_room(service);
  const wire::ChatCompletionRequest asked =
      wire::parse_messages_request(exchange->take_body(), service.options().limits.request);
  exchange->note_ignored(asked.ignored);
  PreparedChat chat = prepare_chat_request(service, asked, *exchange);
  wire::MessageInfo info{numbered("msg_", *exchange), service.name(), chat.form};
  std::vector<whimbrel::Request> requests = only(std::move(chat.request));
  if (asked.generation.stream) {
    wire::MessageStream writer(std::move(info));
    stream(service, exchange, std::move(writer), std::move(requests));
  } else {
    wire::MessageAnswer writer(std::move(info));
    answer_whole(service, exchange, std::move(writer), std::move(requests));
  }
}

void answer_response(ModelService& service, const std::shared_ptr<Exchange>& exchange) {
  require_room(service);
  const wire::ResponsesRequest asked =
      wire::parse_responses_request(exchange->take_body(), service.options().limits.request);
  exchange->note_ignored(asked.chat.ignored);
  PreparedChat chat = prepare_chat_request(service, asked.chat, *exchange);
  wire::ResponseInfo info{.id = numbered("resp_", *exchange), .created = seconds_since_1970()};
  info.model = service.name();
  info.form = chat.form;
  info.repeated = asked.repeated;
  wire::ResponseWriter writer(std::move(info));
  std::vector<whimbrel::Request> requests = only(std::move(chat.request));
  if (asked.chat.generation.stream) {
    stream(service, exchange, std::move(writer), std::move(requests));
  } else {
    answer_whole(service, exchange, std::move(writer), std::move(requests));
  }
}

}  // namespace whimbrel::http
