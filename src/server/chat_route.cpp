#include "server/chat_route.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "base/build_info.h"
#include "engine/messages.h"
#include "server/chat_request.h"
#include "server/chat_writer.h"
#include "server/info_routes.h"
#include "text/reasoning.h"

namespace whimbrel::http {

namespace {

/// Where a prompt ends with the beginning of an answer, these tokens show it.
constexpr size_t kPromptEnd = 16;

/// Seconds after which a client may try again.
constexpr int kRetryAfter = 1;

/// An answer on its way from the engine's thread to a client.
class ChatDelivery {
 public:
  ChatDelivery(
      std::shared_ptr<Exchange> exchange,
      bool stream,
      wire::ChatAnswerInfo info,
      wire::TokenBytes token_bytes
  )
      : exchange_(std::move(exchange)) {
    if (stream) {
      stream_.emplace(std::move(info), std::move(token_bytes));
    } else {
      answer_.emplace(std::move(info), std::move(token_bytes));
    }
  }

  /// Hands the request over. A stream's head leaves before its first event is written.
  void begin(
      ModelService& service, whimbrel::Request request, const std::shared_ptr<ChatDelivery>& self
  ) {
    std::optional<uint64_t> id;
    {
      const std::lock_guard lock(mutex_);
      id = service.serving().submit(std::move(request), [self](const Event& event) {
        self->take(event);
      });
      if (!id) {
        throw ApiException({
            .kind = ErrorKind::too_many_requests,
            .message = "got more requests than may wait, expected fewer; try again in a moment",
            .code = "queue_full",
            .retry_after = kRetryAfter,
        });
      }
      if (stream_) {
        exchange_->start_stream({});
      }
    }
    exchange_->on_close([&service, id = *id](CloseReason) { service.serving().cancel(id); });
  }

 private:
  void take(const Event& event) {
    const std::lock_guard lock(mutex_);
    if (stream_) {
      stream(event);
    } else {
      collect(event);
    }
  }

  void stream(const Event& event) {
    const std::string frames = stream_->push(event);
    if (!frames.empty()) {
      exchange_->write(frames);
    }
    if (stream_->ended()) {
      exchange_->finish();
    }
  }

  void collect(const Event& event) {
    answer_->push(event);
    if (!answer_->ended()) {
      return;
    }
    exchange_->respond(
        answer_->failure() ? error_response(*answer_->failure(), ErrorShape::openai)
                           : Response{.body = wire::dump(answer_->json())}
    );
  }

  std::mutex mutex_;
  std::shared_ptr<Exchange> exchange_;
  std::optional<wire::ChatStream> stream_;
  std::optional<wire::ChatAnswer> answer_;
};

MediaInput read_media(const std::string& url, MediaKind kind) {
  if (!url.starts_with("data:")) {
    throw Error(
        Fault::input,
        kind == MediaKind::image ? "image_url" : "video_url",
        "got another address than a data: URL, expected the bytes themselves; this server fetches "
        "nothing"
    );
  }
  return read_data_url(url, kind);
}

ChatInput conversation_of(const wire::ChatCompletionRequest& asked) {
  ChatInput input = read_messages(asked.conversation.messages, read_media);
  input.chat.tools = asked.tools.template_tools;
  input.chat.kwargs = asked.template_kwargs;
  return input;
}

/// The grammar that the answer has to keep, compiled here: never on the engine's thread.
std::optional<Grammar> grammar_of(
    const ModelService& service, const wire::ChatCompletionRequest& asked
) {
  const GrammarCompiler& compiler = service.grammars();
  if (asked.tools.choice == wire::ToolChoice::required) {
    return compiler.tool_calls(
        {service.chat_template().tool_format(), asked.tools.tools, asked.tools.parallel}
    );
  }
  switch (asked.format.kind) {
    case wire::ResponseFormat::Kind::json_object:
      return compiler.json_object();
    case wire::ResponseFormat::Kind::json_schema:
      return compiler.json_schema(asked.format.schema);
    case wire::ResponseFormat::Kind::text:
      break;
  }
  return std::nullopt;
}

std::string end_of(const Prompt& prompt, const Tokenizer& tokenizer) {
  const size_t count = std::min(prompt.ids.size(), kPromptEnd);
  return tokenizer.decode(std::span(prompt.ids).last(count), SpecialTokens::keep);
}

whimbrel::Request request_of(
    const ModelService& service,
    const wire::ChatCompletionRequest& asked,
    Prompt prompt,
    bool reasoning_opened
) {
  whimbrel::Request request = service.request(std::move(prompt), asked.generation.max_tokens);
  request.sampling = wire::apply(asked.generation.sampling, request.sampling);
  request.stops = asked.generation.stops;
  request.choices = asked.generation.choices;
  if (asked.logprobs) {
    request.top_logprobs = asked.top_logprobs;
  }
  request.grammar = grammar_of(service, asked);
  if (reasoning_opened) {
    request.reasoning_end = service.frontend().tokenizer.token_to_id("</think>");
  }
  return request;
}

wire::ChatAnswerInfo info_of(
    const ModelService& service,
    const wire::ChatCompletionRequest& asked,
    const Prompt& prompt,
    const std::string& request_id
) {
  using std::chrono::system_clock;
  wire::ChatAnswerInfo info{.id = "chatcmpl-" + request_id};
  info.created =
      std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch())
          .count();
  info.model = service.name();
  info.fingerprint = "whimbrel-" + build_info().commit.substr(0, 12);
  info.choices = asked.generation.choices;
  info.form.tools = asked.tools.tools;
  if (asked.tools.choice != wire::ToolChoice::none) {
    info.form.tool_format = service.chat_template().tool_format();
  }
  info.logprobs = asked.logprobs;
  info.include_usage = asked.generation.include_usage;
  info.return_progress = asked.generation.return_progress;
  for (const MediaSpan& span : prompt.media) {
    info.image_tokens += span.tokens();
  }
  return info;
}

}  // namespace

void answer_chat(
    ModelService& service, const wire::RequestLimits& limits, std::shared_ptr<Exchange> exchange
) {
  const wire::ChatCompletionRequest asked =
      wire::parse_chat_request(exchange->request().body, limits);
  require_model(service, asked.generation.model);
  Prompt prompt = service.prepare(conversation_of(asked)).prompt;
  const bool opened = opens_reasoning(end_of(prompt, service.frontend().tokenizer));
  wire::ChatAnswerInfo info = info_of(service, asked, prompt, exchange->request().request_id);
  info.form.reasoning_opened = opened;
  whimbrel::Request request = request_of(service, asked, std::move(prompt), opened);
  request.scope = exchange->request().tenant;
  const auto delivery = std::make_shared<ChatDelivery>(
      std::move(exchange),
      asked.generation.stream,
      std::move(info),
      wire::token_bytes_of(service.frontend().tokenizer)
  );
  delivery->begin(service, std::move(request), delivery);
}

}  // namespace whimbrel::http
