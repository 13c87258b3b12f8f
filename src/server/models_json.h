#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace whimbrel::wire {

/// The one model that is served.
struct ServedModel {
  std::string name = {};  // in requests and answers
  int64_t created = 0;    // seconds since 1970
  int context = 0;        // tokens
  bool has_vision = false;
};

/// GET /v1/models: a list of one, as OpenAI's and Anthropic's clients read it.
Json models_json(const ServedModel& model);

/// GET /v1/models/{model}, or the list's item. Beside OpenAI's fields: Anthropic's,
/// `context_length`, and `architecture.input_modalities` as many clients look for them.
Json model_json(const ServedModel& model);

/// Throws http::ApiException, 404 `model_not_found`, on another model's name. An empty name, of a
/// request that names none, is the served model's.
void require_model(const ServedModel& model, std::string_view name);

}  // namespace whimbrel::wire
