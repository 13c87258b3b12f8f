#include "server/openapi.h"

#include <map>

#include "base/build_info.h"
#include "server/embedded_files.h"

namespace whimbrel::http {

namespace {

using Values = std::map<std::string, Json>;

Values values_of(const ServerLimits& server_limits) {
  const Json limits = limits_json(server_limits);
  Values values = {{"$version", build_info().version}, {"$limits", limits}};
  for (const auto& [name, limit] : limits.items()) {
    values.emplace("$" + name, limit);
  }
  return values;
}

/// Throws std::out_of_range on a name that stands for nothing.
void fill_in(Json& json, const Values& values) {
  if (json.is_string() && json.get_ref<const std::string&>().starts_with('$')) {
    json = values.at(json.get<std::string>());
  } else if (json.is_structured()) {
    for (Json& child : json) {
      fill_in(child, values);
    }
  }
}

void add_common_responses(Json& operation, const Json& common) {
  const bool is_public = operation.contains("security");
  const Json& responses = common.at(operation.value("x-errors", "openai"));
  operation.erase("x-errors");
  for (const auto& [status, response] : responses.items()) {
    if (status != "401" || !is_public) {
      operation["responses"][status] = response;
    }
  }
}

bool is_of_page(const Json& path) {
  return path.at("get").at("tags").front() == "page";
}

/// The paths that are served, under their own names, with all that their operations answer.
Json served_paths(const Json& paths, const Json& common, const OpenApiFacts& facts) {
  Json served = Json::object();
  for (const auto& [name, item] : paths.items()) {
    if (!facts.has_page && item.contains("get") && is_of_page(item)) {
      continue;
    }
    Json& path = served[name == "/v1/models/{model}" ? "/v1/models/" + facts.model : name];
    path = item;
    for (Json& operation : path) {
      add_common_responses(operation, common);
    }
  }
  return served;
}

}  // namespace

Json openapi_document(const OpenApiFacts& facts) {
  Json document = Json::parse(openapi_file);
  fill_in(document, values_of(facts.limits));
  const Json common = document.at("x-common-responses");
  document.erase("x-common-responses");
  document["paths"] = served_paths(document.at("paths"), common, facts);
  return document;
}

}  // namespace whimbrel::http
