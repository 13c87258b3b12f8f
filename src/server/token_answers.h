#pragma once

#include <memory>

#include "server/exchange.h"
#include "server/model_service.h"

// Routes that compute nothing but prompts. All throw ApiException.

namespace whimbrel::http {

using AnswerOf = void(ModelService& service, const std::shared_ptr<Exchange>& exchange);

AnswerOf answer_tokenize;        // POST /tokenize
AnswerOf answer_detokenize;      // POST /detokenize
AnswerOf answer_apply_template;  // POST /apply-template
AnswerOf answer_count_tokens;    // Anthropic's POST /v1/messages/count_tokens
AnswerOf answer_estimate;        // POST /v1/estimate: what a chat would need

}  // namespace whimbrel::http
