#include "server/model_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/memory.h"
#include "generate/sampling_defaults.h"

namespace whimbrel {

namespace {

/// What is asked, and the service's own where nothing is. A bound that is asked for replaces both
/// of the service's.
MediaOptions over(const MediaOptions& own, const MediaOptions& asked) {
  MediaOptions options = asked;
  if (!asked.max_pixels && !asked.image_tokens) {
    options.max_pixels = own.max_pixels;
    options.image_tokens = own.image_tokens;
  }
  const auto fill = [](auto& value, const auto& otherwise) {
    if (!value) {
      value = otherwise;
    }
  };
  options.picture_decoder = own.picture_decoder;
  options.context = own.context;
  options.seconds = own.seconds;
  fill(options.affordable_pixels, own.affordable_pixels);
  fill(options.min_pixels, own.min_pixels);
  fill(options.fps, own.fps);
  fill(options.max_frames, own.max_frames);
  return options;
}

/// `tokens`: how many the prompt has, in words.
http::ApiException too_long(std::string_view tokens, int context) {
  return http::ApiException({
      .kind = http::ErrorKind::bad_request,
      .message = fmt::format(
          "[context] got a prompt of {} tokens, expected less than {}: shorten it, or make "
          "pictures "
          "smaller",
          tokens,
          context
      ),
      .code = "context_length_exceeded",
  });
}

}  // namespace

ModelService::ModelService(Frontend frontend, Engine engine, const ModelServiceOptions& options)
    : frontend_(std::move(frontend)),
      engine_(std::move(engine)),
      options_(options),
      created_(seconds_since_1970()),
      chat_template_(ChatTemplate::load(frontend_.config.folder, frontend_.tokenizer)),
      grammars_(
          frontend_.tokenizer, static_cast<size_t>(frontend_.shape.vocab_size), frontend_.stop_ids
      ),
      token_bytes_(wire::token_bytes_of(frontend_.tokenizer)),
      serving_(engine_.model(), frontend_.shape, frontend_.tokenizer, options.serving) {}

Prepared ModelService::prepare(const ChatInput& input, const MediaOptions& asked) const {
  const RenderedPrompt rendered = render_chat(chat_template_, input);
  require_short(rendered.text().size());
  return prepare_rendered(frontend_, rendered, input.media, over(options_.media, asked));
}

void ModelService::require_short(size_t bytes) const {
  const uint64_t least = frontend_.tokenizer.least_tokens(bytes);
  if (least >= static_cast<uint64_t>(options_.serving.context)) {
    throw too_long(fmt::format("at least {}", least), options_.serving.context);
  }
}

wire::ServedModel ModelService::served() const {
  return {
      .name = options_.name,
      .created = created_,
      .context = options_.serving.context,
      .has_vision = frontend_.media.has_value(),
  };
}

Request ModelService::request(Prompt prompt, const wire::GenerationFields& asked) const {
  const int context = options_.serving.context;
  const int left = context - prompt.tokens();
  if (left < 1) {
    throw too_long(std::to_string(prompt.tokens()), context);
  }
  for (const auto& [id, bias] : asked.sampling.logit_bias) {
    if (id >= frontend_.tokenizer.size()) {
      wire::refuse("logit_bias", fmt::format("token {}", id), "ids of the vocabulary");
    }
  }
  Request request{.prompt = std::move(prompt)};
  request.sampling = apply(asked.sampling, sampling_defaults(frontend_.config));
  request.max_tokens = std::min(asked.max_tokens.value_or(left), left);
  request.stop_ids = frontend_.stop_ids;
  request.stops = asked.stops;
  request.choices = asked.choices;
  return request;
}

std::optional<uint64_t> memory_for_requests() {
  const std::optional<uint64_t> available = available_memory();
  return available ? std::optional(*available / 4 * 3) : std::nullopt;
}

}  // namespace whimbrel
