#include "server/responses_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/responses_input.h"

namespace whimbrel::wire {

namespace {

/// A tool in the form of chat completions, for the template.
Json template_tool(const Json& tool) {
  Json function = Json::object();
  for (const char* key : {"name", "description", "parameters", "strict"}) {
    if (has_value(tool, key)) {
      function[key] = tool.at(key);
    }
  }
  return {{"type", "function"}, {"function", std::move(function)}};
}

/// `tools` and `tool_choice` as chat completions spell them.
Json chat_tools(Fields& fields) {
  Json chat = Json::object();
  if (const std::optional<Field> tools = fields.find("tools")) {
    chat["tools"] = Json::array();
    for (size_t i = 0; i < to_list(*tools).size(); ++i) {
      Fields tool(tools->value[i], fmt::format("{}[{}]", tools->path, i));
      tool.require("type");
      tool.one_of("type", {"function"});
      read_tool_name(tool.require("name"));
      chat["tools"].push_back(template_tool(tools->value[i]));
    }
  }
  if (const std::optional<Field> choice = fields.find("tool_choice")) {
    chat["tool_choice"] = choice->value;
    if (choice->value.is_object()) {
      Fields named(choice->value, choice->path);
      const std::string name = read_tool_name(named.require("name"));
      named.one_of("type", {"function"});
      chat["tool_choice"] = {{"type", "function"}, {"function", {{"name", name}}}};
    }
  }
  if (const std::optional<bool> parallel = fields.boolean("parallel_tool_calls")) {
    chat["parallel_tool_calls"] = *parallel;
  }
  return chat;
}

/// `text.format`, whose json_schema has no object of its own.
ResponseFormat read_text_format(Fields& fields) {
  const std::optional<Field> text = fields.find("text");
  if (!text) {
    return {};
  }
  Fields parts(text->value, text->path);
  parts.one_of("verbosity", {"low", "medium", "high"});
  const std::optional<Field> format = parts.find("format");
  if (!format) {
    return {};
  }
  Fields form(format->value, format->path);
  form.require("type");
  const std::string type = *form.one_of("type", {"text", "json_object", "json_schema"});
  if (type == "json_object") {
    return {.kind = ResponseFormat::Kind::json_object};
  }
  if (type == "text") {
    return {};
  }
  read_tool_name(form.require("name"));
  form.boolean("strict");
  const Field schema = form.require("schema");
  to_object(schema);
  return {.kind = ResponseFormat::Kind::json_schema, .schema = schema.value};
}

Json read_reasoning(Fields& fields) {
  Json kwargs = Json::object();
  const std::optional<Field> field = fields.find("reasoning");
  if (!field) {
    return kwargs;
  }
  Fields reasoning(field->value, field->path);
  const std::optional<std::string> effort =
      reasoning.one_of("effort", {"none", "minimal", "low", "medium", "high", "xhigh", "max"});
  if (effort) {
    kwargs["enable_thinking"] = *effort != "none" && *effort != "minimal";
    kwargs["reasoning_effort"] = *effort;
  }
  return kwargs;
}

void refuse_stored_state(Fields& fields) {
  fields.refuse_present("previous_response_id", "the whole conversation as input: none is stored");
  fields.refuse_present("conversation", "the whole conversation as input: none is stored");
  fields.refuse_present("prompt", "input: no prompts are stored");
  if (fields.boolean("background").value_or(false)) {
    refuse("background", "true", "false: an answer is not kept");
  }
  fields.one_of("truncation", {"disabled"});
  fields.boolean("store");
}

GenerationFields read_generation(Fields& fields) {
  GenerationFields read;
  read.model = fields.text("model").value_or("");
  read.sampling.temperature = fields.number("temperature", 0, 100);
  read.sampling.top_p = read_top_p(fields);
  if (const std::optional<int64_t> tokens = fields.integer("max_output_tokens", 1)) {
    read.max_tokens = static_cast<int>(*tokens);
  }
  read.stream = fields.boolean("stream").value_or(false);
  return read;
}

/// The fields of an answer that repeat its request.
Json repeated_fields(const Json& body) {
  Json repeated = {
      {"instructions", nullptr},
      {"max_output_tokens", nullptr},
      {"metadata", Json::object()},
      {"parallel_tool_calls", true},
      {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
      {"temperature", nullptr},
      {"text", {{"format", {{"type", "text"}}}}},
      {"tool_choice", "auto"},
      {"tools", Json::array()},
      {"top_p", nullptr},
      {"user", nullptr}
  };
  for (auto& [key, value] : repeated.items()) {
    if (has_value(body, key)) {
      value = body.at(key);
    }
  }
  return repeated;
}

}  // namespace

ResponsesRequest parse_responses_request(std::string_view body, const RequestLimits& limits) {
  const Json json = parse_body(body, limits);
  Fields fields(json);
  ResponsesRequest read;
  ChatCompletionRequest& chat = read.chat;
  chat.generation = read_generation(fields);
  chat.conversation =
      read_responses_input(fields.text("instructions"), fields.require("input"), limits);
  const Json tools = chat_tools(fields);
  Fields tool_fields(tools);
  chat.tools = read_tool_fields(tool_fields, limits);
  chat.template_kwargs = read_reasoning(fields);
  chat.format = read_text_format(fields);
  if (chat.format.kind != ResponseFormat::Kind::text && !chat.tools.tools.empty()) {
    refuse("text.format", "a form of the answer beside tools", "no tools, or tool_choice none");
  }
  refuse_stored_state(fields);
  accept_without_effect(
      fields,
      {"metadata",
       "user",
       "service_tier",
       "include",
       "safety_identifier",
       "prompt_cache_key",
       "stream_options"}
  );
  chat.ignored = fields.unread();
  read.repeated = repeated_fields(json);
  return read;
}

}  // namespace whimbrel::wire
