#pragma once

#include <memory>

#include "server/exchange.h"
#include "server/model_service.h"
#include "server/request_limits.h"

namespace whimbrel::http {

/// POST /v1/chat/completions: prepares the prompt on the caller's thread and hands it to the
/// engine, whose events become the answer. Throws ApiException, and Error as ModelService does.
void answer_chat(
    ModelService& service, const wire::RequestLimits& limits, std::shared_ptr<Exchange> exchange
);

}  // namespace whimbrel::http
