#pragma once

#include <vector>

#include "server/model_service.h"
#include "server/request_limits.h"
#include "server/router.h"

namespace whimbrel::http {

/// Routes that compute nothing but prompts: /tokenize, /detokenize, /apply-template,
/// /v1/messages/count_tokens and /v1/estimate, which says of a chat what it would need.
std::vector<Route> token_routes(ModelService& service, const wire::RequestLimits& limits);

}  // namespace whimbrel::http
