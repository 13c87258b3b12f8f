#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/access_log.h"
#include "server/router.h"
#include "server/worker_supervisor.h"

namespace whimbrel::http {

/// All routes of the process that holds the connections: /health, /ready and /metrics, which it
/// answers whatever the worker does, and those of the model, which it hands on. `counters`: the
/// HTTP server's numbers.
std::vector<Route> front_routes(
    const std::string& model_name,
    WorkerSupervisor& worker,
    const std::function<HttpCounters()>& counters
);

}  // namespace whimbrel::http
