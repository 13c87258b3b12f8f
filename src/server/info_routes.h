#pragma once

#include <string>
#include <vector>

#include "server/model_service.h"
#include "server/router.h"

namespace whimbrel::http {

/// Routes that tell of the server and its model: /health, /ready, /v1/models, /props, /slots.
std::vector<Route> info_routes(ModelService& service);

/// Throws ApiException (404, `model_not_found`) where a request names another model; one that names
/// none means this one.
void require_model(const ModelService& service, const std::string& model);

}  // namespace whimbrel::http
