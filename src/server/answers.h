#pragma once

#include <memory>

#include "server/exchange.h"
#include "server/model_service.h"

// The routes that answer with a model's words. Each prepares its prompt on the caller's thread and
// hands it to the engine, whose events become the answer. All throw ApiException, and Error as
// ModelService does.

namespace whimbrel::http {

/// POST /v1/chat/completions.
void answer_chat(ModelService& service, const std::shared_ptr<Exchange>& exchange);

/// POST /v1/completions.
void answer_completion(ModelService& service, const std::shared_ptr<Exchange>& exchange);

/// Anthropic's POST /v1/messages.
void answer_message(ModelService& service, const std::shared_ptr<Exchange>& exchange);

/// POST /v1/responses.
void answer_response(ModelService& service, const std::shared_ptr<Exchange>& exchange);

}  // namespace whimbrel::http
