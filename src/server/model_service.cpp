#include "server/model_service.h"

#include <algorithm>

#include "base/memory.h"
#include "generate/sampling_defaults.h"

namespace whimbrel {

ModelService::ModelService(Frontend frontend, Engine engine, const ModelServiceOptions& options)
    : frontend_(std::move(frontend)),
      engine_(std::move(engine)),
      options_(options),
      chat_template_(ChatTemplate::load(frontend_.config.folder, frontend_.tokenizer)),
      grammars_(
          frontend_.tokenizer, static_cast<size_t>(frontend_.shape.vocab_size), frontend_.stop_ids
      ),
      serving_(engine_.model(), frontend_.shape, frontend_.tokenizer, options.serving) {}

Prepared ModelService::prepare(const ChatInput& input) const {
  return prepare_chat(frontend_, chat_template_, input, options_.media);
}

Request ModelService::request(Prompt prompt, std::optional<int> max_tokens) const {
  require_room(prompt, options_.serving.context);
  const int left = options_.serving.context - prompt.tokens();
  Request request{.prompt = std::move(prompt), .sampling = sampling_defaults(frontend_.config)};
  request.max_tokens = std::min(max_tokens.value_or(left), left);
  request.stop_ids = frontend_.stop_ids;
  return request;
}

std::optional<uint64_t> memory_for_requests() {
  const std::optional<uint64_t> available = available_memory();
  return available ? std::optional(*available / 4 * 3) : std::nullopt;
}

}  // namespace whimbrel
