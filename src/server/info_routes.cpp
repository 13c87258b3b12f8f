#include "server/info_routes.h"

#include <fmt/format.h>

#include "base/build_info.h"

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
  const Json model = {
      {"id", service.name()}, {"object", "model"}, {"created", 0}, {"owned_by", "whimbrel"}
  };
  return {{"object", "list"}, {"data", Json::array({model})}};
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

}  // namespace

std::vector<Route> info_routes(ModelService& service) {
  return {
      open_to_all(tells("/health", service, health)),
      open_to_all(tells("/ready", service, health)),
      tells("/v1/models", service, models),
      tells("/props", service, props),
      tells("/slots", service, slots),
  };
}

void require_model(const ModelService& service, const std::string& model) {
  if (!model.empty() && model != service.name()) {
    throw ApiException({
        .kind = ErrorKind::not_found,
        .message = fmt::format(
            "[model] got another model than the one that is served, expected {}", service.name()
        ),
        .param = "model",
        .code = "model_not_found",
    });
  }
}

}  // namespace whimbrel::http
