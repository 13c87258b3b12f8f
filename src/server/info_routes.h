#pragma once

#include <functional>
#include <vector>

#include "server/access_log.h"
#include "server/model_service.h"
#include "server/router.h"

namespace whimbrel::http {

/// Routes that tell of the server and its model: /health, /ready, /v1/models, /props, /slots,
/// /metrics. `counters`: the HTTP server's numbers.
std::vector<Route> info_routes(
    ModelService& service, const std::function<HttpCounters()>& counters
);

}  // namespace whimbrel::http
