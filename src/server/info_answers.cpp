#include "server/info_answers.h"

#include "base/build_info.h"
#include "server/answer_tally.h"
#include "server/limits.h"
#include "server/metrics.h"
#include "server/models_json.h"

namespace whimbrel::http {

namespace {

Json slots(const ModelService& service) {
  const ServingStatus status = service.serving().status();
  return {
      {"running", status.running},
      {"queued", status.queued},
      {"paused", status.paused},
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
      {"guessed_tokens", status.guessed_tokens},
      {"guessed_right", status.guessed_right},
      {"preempted", status.preempted},
      {"prefixes_lost", status.prefixes_lost},
      {"pictures_encoded", status.pictures_encoded},
      {"pictures_cached", status.pictures_cached},
      {"steps", status.steps},
  };
}

/// How numbers of a box become pixels of its picture, for who draws it; null where that isn't
/// known.
Json box_convention(const Frontend& frontend) {
  switch (frontend.media ? frontend.media->boxes : BoxConvention::unknown) {
    case BoxConvention::thousandths:
      return "thousandths";
    case BoxConvention::resized_pixels:
      return "resized_pixels";
    case BoxConvention::unknown:
      break;
  }
  return nullptr;
}

Json props(const ModelService& service) {
  const ServingOptions& serving = service.options().serving;
  const BuildInfo& build = build_info();
  return {
      {"model", service.name()},
      {"model_type", service.frontend().config.model_type},
      {"box_convention", box_convention(service.frontend())},
      {"build", {{"version", build.version}, {"commit", build.commit}}},
      {"ops", service.engine().ops_name()},
      {"context", serving.context},
      {"parallel", serving.parallel},
      {"queue", serving.queue},
      {"queue_tokens", serving.queue_tokens},
      {"queue_memory", serving.queue_memory},
      {"queue_seconds", serving.queue_seconds},
      {"request_seconds", serving.request_seconds},
      {"prefill_chunk", serving.prefill_chunk},
      {"kv_bits", serving.kv_bits},
      {"prompt_lookup", serving.prompt_lookup},
      {"answer_piece", serving.answer_piece},
      {"memory", serving.memory},
      {"prefix_memory", serving.prefix_memory},
      {"feature_memory", serving.feature_memory},
      {"limits", limits_json(service.options().limits)},
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
      counter(
          "whimbrel_guessed_tokens_total",
          "Answer tokens guessed before they were drawn",
          number(status.guessed_tokens)
      ),
      counter(
          "whimbrel_guessed_right_total", "Of these, those drawn", number(status.guessed_right)
      ),
      counter("whimbrel_preemptions_total", "Requests that gave way", number(status.preempted)),
      counter("whimbrel_pictures_encoded_total", "Towers run", number(status.pictures_encoded)),
      counter("whimbrel_pictures_cached_total", "Towers not run", number(status.pictures_cached)),
      counter("whimbrel_steps_total", "Steps of the engine", number(status.steps)),
      gauge("whimbrel_memory_bytes", "Memory for requests", number(status.memory_budget)),
      gauge("whimbrel_memory_used_bytes", "Of that in use", number(status.memory_used)),
  };
}

void tell(Exchange& exchange, const Json& json) {
  exchange.respond({.body = wire::dump(json)});
}

}  // namespace

void answer_models(ModelService& service, const std::shared_ptr<Exchange>& exchange) {
  tell(*exchange, wire::models_json(service.served()));
}

void answer_model(ModelService& service, const std::shared_ptr<Exchange>& exchange) {
  tell(*exchange, wire::model_json(service.served()));
}

void answer_props(ModelService& service, const std::shared_ptr<Exchange>& exchange) {
  tell(*exchange, props(service));
}

void answer_slots(ModelService& service, const std::shared_ptr<Exchange>& exchange) {
  tell(*exchange, slots(service));
}

WorkerReport report_of(const ModelService& service) {
  const ServingStatus status = service.serving().status();
  return {
      .running = status.running + status.queued,
      .steps = status.steps,
      .metrics = prometheus_text(serving_metrics(status)),
  };
}

}  // namespace whimbrel::http
