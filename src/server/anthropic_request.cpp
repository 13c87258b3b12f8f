#include "server/anthropic_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/anthropic_messages.h"

namespace whimbrel::wire {

namespace {

/// A tool in OpenAI's form, for the template.
Json template_tool(const Tool& tool, const std::optional<std::string>& description) {
  Json function = {{"name", tool.name}};
  if (description) {
    function["description"] = *description;
  }
  function["parameters"] = tool.parameters;
  return {{"type", "function"}, {"function", std::move(function)}};
}

void read_tool(const Json& json, const std::string& path, ToolFields& read) {
  Fields fields(json, path);
  fields.one_of("type", {"custom"});
  Tool tool;
  tool.name = read_tool_name(fields.require("name"));
  if (std::ranges::count(read.tools, tool.name, &Tool::name) > 0) {
    refuse(path + ".name", shown(tool.name) + " again", "a name of its own");
  }
  const std::optional<std::string> description = fields.text("description");
  const Field schema = fields.require("input_schema");
  to_object(schema);
  tool.parameters = schema.value;
  read.template_tools.push_back(template_tool(tool, description));
  read.tools.push_back(std::move(tool));
}

void read_tools(Fields& fields, const RequestLimits& limits, ToolFields& read) {
  const std::optional<Field> tools = fields.find("tools");
  if (!tools) {
    return;
  }
  const size_t count = to_list(*tools).size();
  if (std::cmp_greater(count, limits.tools)) {
    refuse(tools->path, fmt::format("{} tools", count), fmt::format("at most {}", limits.tools));
  }
  read.template_tools = Json::array();
  for (size_t i = 0; i < count; ++i) {
    read_tool(tools->value[i], fmt::format("{}[{}]", tools->path, i), read);
  }
}

/// Leaves the tool that the choice names.
void choose_tool(Fields& choice, ToolFields& read) {
  const Field name = choice.require("name");
  const auto found = std::ranges::find(read.tools, to_text(name), &Tool::name);
  if (found == read.tools.end()) {
    refuse(name.path, shown(name.value), "the name of one of tools");
  }
  read.tools = {*found};
}

ToolFields read_anthropic_tools(Fields& fields, const RequestLimits& limits) {
  ToolFields read;
  read_tools(fields, limits, read);
  read.choice = read.tools.empty() ? ToolChoice::none : ToolChoice::automatic;
  if (const std::optional<Field> field = fields.find("tool_choice")) {
    Fields choice(field->value, field->path);
    choice.require("type");
    const std::string type = *choice.one_of("type", {"auto", "any", "tool", "none"});
    read.parallel = !choice.boolean("disable_parallel_tool_use").value_or(false);
    if ((type == "any" || type == "tool") && read.tools.empty()) {
      refuse(field->path, shown(type) + " without tools", "tools to choose from");
    }
    if (type == "tool") {
      choose_tool(choice, read);
    }
    if (type != "auto") {
      read.choice = type == "none" ? ToolChoice::none : ToolChoice::required;
    }
  }
  if (read.choice == ToolChoice::none) {
    read.tools.clear();
    read.template_tools = nullptr;
  }
  return read;
}

bool wants_thinking(Fields& fields) {
  const std::optional<Field> field = fields.find("thinking");
  if (!field) {
    return false;
  }
  Fields thinking(field->value, field->path);
  thinking.require("type");
  const std::string type = *thinking.one_of("type", {"enabled", "disabled", "adaptive"});
  thinking.integer("budget_tokens", 1);
  return type != "disabled";
}

ResponseFormat read_format(const std::optional<Field>& field) {
  if (!field) {
    return {};
  }
  Fields format(field->value, field->path);
  format.require("type");
  format.one_of("type", {"json_schema"});
  const Field schema = format.require("schema");
  to_object(schema);
  return {.kind = ResponseFormat::Kind::json_schema, .schema = schema.value};
}

ResponseFormat read_output(Fields& fields) {
  const std::optional<Field> config = fields.find("output_config");
  const std::optional<Field> old = fields.find("output_format");
  if (!config) {
    return read_format(old);
  }
  Fields parts(config->value, config->path);
  parts.one_of("effort", {"low", "medium", "high", "xhigh", "max"});
  const std::optional<Field> format = parts.find("format");
  return read_format(format ? format : old);
}

GenerationFields read_generation(Fields& fields, const RequestLimits& limits) {
  constexpr int kMostTopK = 1'000'000'000;
  GenerationFields read;
  read.sampling.temperature = fields.number("temperature", 0, 100);
  read.sampling.top_p = read_top_p(fields);
  if (const std::optional<int64_t> top_k = fields.integer("top_k", 0, kMostTopK)) {
    read.sampling.top_k = static_cast<int>(*top_k);
  }
  if (const std::optional<int64_t> tokens = fields.integer("max_tokens", 1)) {
    read.max_tokens = static_cast<int>(*tokens);
  }
  read.stops = read_stops(fields, "stop_sequences", limits);
  read.stream = fields.boolean("stream").value_or(false);
  return read;
}

ChatCompletionRequest read_request(Fields& fields, const RequestLimits& limits) {
  ChatCompletionRequest read;
  read.generation = read_generation(fields, limits);
  read.generation.model = to_text(fields.require("model"));
  const std::optional<Field> system = fields.find("system");
  read.conversation = read_anthropic_messages(system, fields.require("messages"), limits);
  read.tools = read_anthropic_tools(fields, limits);
  read.template_kwargs = {{"enable_thinking", wants_thinking(fields)}};
  read.format = read_output(fields);
  if (read.format.kind != ResponseFormat::Kind::text && !read.tools.tools.empty()) {
    refuse("output_config", "a form of the answer beside tools", "no tools, or tool_choice none");
  }
  accept_without_effect(
      fields,
      {"metadata", "service_tier", "container", "context_management", "betas", "cache_control"}
  );
  read.ignored = fields.unread();
  return read;
}

}  // namespace

ChatCompletionRequest parse_messages_request(std::string_view body, const RequestLimits& limits) {
  const Json json = parse_body(body, limits);
  Fields fields(json);
  fields.require("max_tokens");
  return read_request(fields, limits);
}

ChatCompletionRequest parse_count_tokens_request(
    std::string_view body, const RequestLimits& limits
) {
  const Json json = parse_body(body, limits);
  Fields fields(json);
  return read_request(fields, limits);
}

}  // namespace whimbrel::wire
