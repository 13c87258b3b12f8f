#pragma once

#include <functional>
#include <vector>

#include "server/access_log.h"
#include "server/model_service.h"
#include "server/router.h"

namespace whimbrel::http {

/// All routes of a server of one model, which outlives them. `counters`: the server's own numbers.
std::vector<Route> model_routes(
    ModelService& service, const std::function<HttpCounters()>& counters
);

}  // namespace whimbrel::http
