#pragma once

#include "engine/request.h"
#include "server/answer_boxes.h"
#include "server/answer_parts.h"
#include "server/chat_request.h"
#include "server/exchange.h"
#include "server/model_service.h"

namespace whimbrel::http {

/// The conversation in the template's form, which says of pictures and videos only where they
/// stand.
ChatInput chat_without_media(const wire::ChatCompletionRequest& asked);

/// The conversation as the engine takes it. Throws ApiException (404) where it names another model,
/// Error(Fault::input) where pictures can't be had or read, the template refuses it, or it is too
/// long, and Error(Fault::interrupted) where the client leaves while pictures are fetched and read.
Prompt chat_prompt(
    const ModelService& service, const wire::ChatCompletionRequest& asked, const Exchange& exchange
);

/// What a prompt's pictures and videos became: size, resized, grid_thw, first_token, tokens.
Json media_json(const Prompt& prompt);

/// A chat on its way to the engine.
struct PreparedChat {
  whimbrel::Request request;
  wire::AnswerForm form = {};
  int image_tokens = 0;    // of pictures and videos
  Json details = nullptr;  // the answer's `whimbrel`, where it was asked for
  wire::BoxForm boxes = {};
};

/// The same with all that is asked of the answer. Compiles its grammar, which may take two seconds:
/// never on a thread that others wait for.
PreparedChat prepare_chat_request(
    const ModelService& service, const wire::ChatCompletionRequest& asked, const Exchange& exchange
);

}  // namespace whimbrel::http
