#include "server/models_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "server/fields.h"

namespace whimbrel::wire {

Json model_json(const ServedModel& model) {
  Json modalities = Json::array({"text"});
  if (model.has_vision) {
    modalities.push_back("image");
    modalities.push_back("video");
  }
  return {
      {"id", model.name},
      {"object", "model"},
      {"created", model.created},
      {"owned_by", "whimbrel"},
      {"type", "model"},
      {"display_name", model.name},
      {"created_at", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(model.created))},
      {"context_length", model.context},
      {"architecture",
       {{"input_modalities", std::move(modalities)}, {"output_modalities", Json::array({"text"})}}}
  };
}

Json models_json(const ServedModel& model) {
  return {
      {"object", "list"},
      {"data", Json::array({model_json(model)})},
      {"has_more", false},
      {"first_id", model.name},
      {"last_id", model.name}
  };
}

void require_model(const ServedModel& model, std::string_view name) {
  if (name.empty() || name == model.name) {
    return;
  }
  throw http::ApiException(
      {.kind = http::ErrorKind::not_found,
       .message =
           fmt::format("[model] got {}, expected {}", shown(Json(name)), shown(Json(model.name))),
       .param = "model",
       .code = "model_not_found"}
  );
}

}  // namespace whimbrel::wire
