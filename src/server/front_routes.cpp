#include "server/front_routes.h"

#include <utility>

#include "server/metrics.h"
#include "server/model_routes.h"

namespace whimbrel::http {

namespace {

Route own(std::string path, Handler handler) {
  return {.path = std::move(path), .immediate = true, .handler = std::move(handler)};
}

Route open_to_all(Route route) {
  route.needs_key = false;
  return route;
}

void health(const std::shared_ptr<Exchange>& exchange) {
  exchange->respond({.body = R"({"status":"ok"})"});
}

Handler ready(const WorkerSupervisor& worker) {
  return [&worker](const std::shared_ptr<Exchange>& exchange) {
    if (!worker.status().ready) {
      throw ApiException(model_is_loading());
    }
    health(exchange);
  };
}

std::vector<Metric> worker_metrics(const WorkerStatus& status) {
  return {
      {"whimbrel_worker_ready",
       "Whether the model is loaded",
       MetricKind::gauge,
       {{{}, status.ready ? 1.0 : 0.0}}},
      {"whimbrel_worker_restarts_total",
       "Workers that were started in place of one that died",
       MetricKind::counter,
       {{{}, static_cast<double>(status.restarts)}}},
  };
}

Handler metrics(const WorkerSupervisor& worker, const std::function<HttpCounters()>& counters) {
  return [&worker, counters](const std::shared_ptr<Exchange>& exchange) {
    const WorkerStatus status = worker.status();
    std::vector<Metric> metrics = worker_metrics(status);
    for (Metric& metric : http_metrics(counters())) {
      metrics.push_back(std::move(metric));
    }
    exchange->respond(
        {.content_type = kPrometheusContentType,
         .body = prometheus_text(metrics) + status.report.metrics}
    );
  };
}

/// Handing on waits for nobody.
Route handed_on(ModelRoute asked, WorkerSupervisor& worker) {
  return {
      .method = std::move(asked.method),
      .path = std::move(asked.path),
      .immediate = true,
      .handler = [&worker](const std::shared_ptr<Exchange>& exchange) { worker.forward(exchange); },
  };
}

}  // namespace

std::vector<Route> front_routes(
    const std::string& model_name,
    WorkerSupervisor& worker,
    const std::function<HttpCounters()>& counters
) {
  std::vector<Route> routes = {
      open_to_all(own("/health", health)),
      open_to_all(own("/ready", ready(worker))),
      own("/metrics", metrics(worker, counters)),
  };
  for (ModelRoute& asked : model_routes(model_name)) {
    routes.push_back(handed_on(std::move(asked), worker));
  }
  return routes;
}

}  // namespace whimbrel::http
