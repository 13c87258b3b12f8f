#include "server/info_routes.h"

#include "base/build_info.h"
#include "server/metrics.h"
#include "server/models_json.h"

namespace whimbrel::http {

namespace {

using JsonOf = Json (*)(ModelService& service);

/// A route that answers with JSON at once.
Route tells(std::string path, ModelService& service, JsonOf json_of) {
  return {
      .path = std::move(path),
      .immediate = true,
      .handler = [&service, json_of](const std::shared_ptr<Exchange>& exchange) {
        exchange->respond({.body = json_of(service).dump()});
      },
  };
}

Route open_to_all(Route route) {
  route.needs_key = false;
  return route;
}

Json health(ModelService& /*service*/) {
  return {{"status", "ok"}};
}

Json models(ModelService& service) {
  return wire::models_json(service.served());
}

Json model(ModelService& service) {
  return wire::model_json(service.served());
}

Json slots(ModelService& service) {
  const ServingStatus status = service.serving().status();
  return {
      {"running", status.running},
      {"queued", status.queued},
      {"memory_budget", status.memory_budget},
      {"memory_used", status.memory_used},
      {"prefix_bytes", status.prefix_bytes},
      {"feature_bytes", status.feature_bytes},
      {"requests_finished", status.finished},
      {"requests_failed", status.failed},
      {"requests_cancelled", status.cancelled},
      {"prompt_tokens", status.prompt_tokens},
      {"cached_tokens", status.cached_tokens},
      {"answer_tokens", status.answer_tokens},
      {"pictures_encoded", status.pictures_encoded},
      {"pictures_cached", status.pictures_cached},
      {"steps", status.steps},
  };
}

Json props(ModelService& service) {
  const ServingOptions& serving = service.options().serving;
  const BuildInfo& build = build_info();
  return {
      {"model", service.name()},
      {"model_type", service.frontend().config.model_type},
      {"build", {{"version", build.version}, {"commit", build.commit}}},
      {"ops", service.engine().ops_name()},
      {"context", serving.context},
      {"parallel", serving.parallel},
      {"queue", serving.queue},
      {"queue_tokens", serving.queue_tokens},
      {"prefill_chunk", serving.prefill_chunk},
      {"kv_bits", serving.kv_bits},
      {"memory", serving.memory},
      {"prefix_memory", serving.prefix_memory},
      {"feature_memory", serving.feature_memory},
  };
}

Metric gauge(std::string name, std::string help, double value) {
  return {std::move(name), std::move(help), MetricKind::gauge, {{{}, value}}};
}

Metric counter(std::string name, std::string help, double value) {
  return {std::move(name), std::move(help), MetricKind::counter, {{{}, value}}};
}

std::vector<Metric> serving_metrics(const ServingStatus& status) {
  const auto number = [](uint64_t count) { return static_cast<double>(count); };
  Metric requests{
      "whimbrel_requests_total", "Requests that ended, by how", MetricKind::counter, {}
  };
  requests.samples = {
      {{{"end", "finished"}}, number(status.finished)},
      {{{"end", "failed"}}, number(status.failed)},
      {{{"end", "cancelled"}}, number(status.cancelled)},
  };
  return {
      gauge("whimbrel_requests_running", "Requests that are computed", status.running),
      gauge("whimbrel_requests_waiting", "Requests in the queue", status.queued),
      std::move(requests),
      counter("whimbrel_prompt_tokens_total", "Prompt tokens", number(status.prompt_tokens)),
      counter(
          "whimbrel_cached_tokens_total",
          "Prompt tokens that were not computed again",
          number(status.cached_tokens)
      ),
      counter("whimbrel_answer_tokens_total", "Answer tokens", number(status.answer_tokens)),
      counter("whimbrel_pictures_encoded_total", "Towers run", number(status.pictures_encoded)),
      counter("whimbrel_pictures_cached_total", "Towers not run", number(status.pictures_cached)),
      counter("whimbrel_steps_total", "Steps of the engine", number(status.steps)),
      gauge("whimbrel_memory_bytes", "Memory for requests", number(status.memory_budget)),
      gauge("whimbrel_memory_used_bytes", "Of that in use", number(status.memory_used)),
  };
}

Route metrics_route(ModelService& service, const std::function<HttpCounters()>& counters) {
  return {
      .path = "/metrics",
      .immediate = true,
      .handler = [&service, counters](const std::shared_ptr<Exchange>& exchange) {
        std::vector<Metric> metrics = serving_metrics(service.serving().status());
        for (Metric& metric : http_metrics(counters())) {
          metrics.push_back(std::move(metric));
        }
        exchange->respond(
            {.content_type = kPrometheusContentType, .body = prometheus_text(metrics)}
        );
      },
  };
}

}  // namespace

std::vector<Route> info_routes(
    ModelService& service, const std::function<HttpCounters()>& counters
) {
  return {
      open_to_all(tells("/health", service, health)),
      open_to_all(tells("/ready", service, health)),
      tells("/v1/models", service, models),
      tells("/v1/models/" + service.name(), service, model),
      tells("/props", service, props),
      tells("/slots", service, slots),
      metrics_route(service, counters),
  };
}

}  // namespace whimbrel::http
