#include "server/chat_prompt.h"

#include <algorithm>
#include <span>

#include "engine/messages.h"
#include "text/reasoning.h"

namespace whimbrel::http {

namespace {

/// Where a prompt ends with the beginning of an answer, these tokens show it.
constexpr size_t kPromptEnd = 16;

/// A picture for `detail: low`: enough to say what is on it.
constexpr int kLowTokens = 256;

/// Tokens that a picture of this detail has at most, inside the server's bounds; nothing: as many
/// as those allow. A picture looked at closely leaves half of the context to the rest.
std::optional<int64_t> most_tokens(wire::ImageDetail detail, int context) {
  switch (detail) {
    case wire::ImageDetail::low:
      return kLowTokens;
    case wire::ImageDetail::high:
      return std::max(context / 2, 1);
    case wire::ImageDetail::automatic:
      break;
  }
  return std::nullopt;
}

/// Bounds that a request states for all of its pictures count for more than their details.
void set_details(
    std::vector<MediaInput>& media, const wire::ChatCompletionRequest& asked, int context
) {
  const MediaOptions& bounds = asked.generation.whimbrel.media;
  if (bounds.max_pixels || bounds.image_tokens) {
    return;
  }
  for (size_t i = 0; i < media.size(); ++i) {
    media[i].most_tokens = most_tokens(asked.conversation.media.at(i).detail, context);
  }
}

/// The grammar that the answer has to keep.
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

wire::AnswerForm form_of(
    const ModelService& service, const wire::ChatCompletionRequest& asked, const Prompt& prompt
) {
  wire::AnswerForm form;
  form.reasoning_opened = opens_reasoning(end_of(prompt, service.frontend().tokenizer));
  form.tools = asked.tools.tools;
  if (asked.tools.choice != wire::ToolChoice::none) {
    form.tool_format = service.chat_template().tool_format();
  }
  return form;
}

wire::BoxForm box_form_of(const Frontend& frontend, const Prompt& prompt) {
  if (!frontend.media) {
    return {};
  }
  return {frontend.media->box_notation, box_scale(prompt.media, frontend.media->boxes)};
}

int media_tokens(const Prompt& prompt) {
  int tokens = 0;
  for (const MediaSpan& span : prompt.media) {
    tokens += span.tokens();
  }
  return tokens;
}

Json medium_json(const MediaSpan& span) {
  const Patches& patches = span.patches;
  return {
      {"kind", span.kind == MediaKind::image ? "image" : "video"},
      {"size", {patches.original.width, patches.original.height}},
      {"resized", {patches.resized.width, patches.resized.height}},
      {"grid_thw", patches.grid_thw},
      {"first_token", span.first_token()},
      {"tokens", span.tokens()},
  };
}

ChatInput chat_of(const wire::ChatCompletionRequest& asked, const MediaReader& read_media) {
  ChatInput input = read_messages(asked.conversation.messages, read_media);
  input.chat.tools = asked.tools.template_tools;
  input.chat.kwargs = asked.template_kwargs;
  return input;
}

}  // namespace

ChatInput chat_without_media(const wire::ChatCompletionRequest& asked) {
  return chat_of(asked, [](const std::string&, MediaKind kind) {
    return MediaInput{.source = "", .kind = kind};
  });
}

Json media_json(const Prompt& prompt) {
  Json media = Json::array();
  for (const MediaSpan& span : prompt.media) {
    media.push_back(medium_json(span));
  }
  return media;
}

Prompt chat_prompt(
    const ModelService& service, const wire::ChatCompletionRequest& asked, const Exchange& exchange
) {
  wire::require_model(service.served(), asked.generation.model);
  const ModelServiceOptions& options = service.options();
  const Cancelled cancelled = [&exchange] { return exchange.closed(); };
  ChatInput input = chat_of(asked, media_reader(options.sources, cancelled));
  set_details(input.media, asked, options.serving.context);
  MediaOptions media = asked.generation.whimbrel.media;
  media.cancelled = cancelled;
  return service.prepare(input, media).prompt;
}

PreparedChat prepare_chat_request(
    const ModelService& service, const wire::ChatCompletionRequest& asked, const Exchange& exchange
) {
  Prompt prompt = chat_prompt(service, asked, exchange);
  wire::AnswerForm form = form_of(service, asked, prompt);
  const wire::BoxForm boxes = box_form_of(service.frontend(), prompt);
  const int image_tokens = media_tokens(prompt);
  Json details = nullptr;
  if (asked.generation.whimbrel.details) {
    details = {{"media", media_json(prompt)}};
  }
  whimbrel::Request request = service.request(std::move(prompt), asked.generation);
  request.scope = exchange.request().tenant;
  if (asked.logprobs) {
    request.top_logprobs = asked.top_logprobs;
  }
  request.grammar = grammar_of(service, asked);
  if (form.reasoning_opened) {
    request.reasoning_end = service.frontend().tokenizer.token_to_id("</think>");
  }
  return {std::move(request), std::move(form), image_tokens, std::move(details), boxes};
}

}  // namespace whimbrel::http
