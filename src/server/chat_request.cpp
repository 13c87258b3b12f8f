#include "server/chat_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace whimbrel::wire {

namespace {

/// Variables that the server or the checkpoint sets, and arguments of transformers' function.
constexpr std::array<std::string_view, 17> kInternals = {
    "messages",
    "conversation",
    "namespace",
    "tools",
    "documents",
    "add_generation_prompt",
    "continue_final_message",
    "tokenize",
    "chat_template",
    "bos_token",
    "eos_token",
    "pad_token",
    "unk_token",
    "return_dict",
    "return_tensors",
    "raise_exception",
    "strftime_now"
};

ResponseFormat schema_format(const Field& schema) {
  to_object(schema);
  return {.kind = ResponseFormat::Kind::json_schema, .schema = schema.value};
}

ResponseFormat read_json_schema(const Field& field) {
  Fields fields(field.value, field.path);
  if (const std::optional<Field> name = fields.find("name")) {
    read_tool_name(*name);
  }
  fields.text("description");
  fields.boolean("strict");
  return schema_format(fields.require("schema"));
}

void read_logprobs(Fields& fields, const RequestLimits& limits, ChatCompletionRequest& read) {
  read.logprobs = fields.boolean("logprobs").value_or(false);
  const int64_t top = fields.integer("top_logprobs", 0, limits.top_logprobs).value_or(0);
  if (top > 0 && !read.logprobs) {
    refuse("top_logprobs", fmt::to_string(top) + " without logprobs", "logprobs: true beside it");
  }
  read.top_logprobs = static_cast<int>(top);
}

Json read_template_variables(Fields& fields) {
  Json kwargs = read_template_kwargs(fields);
  const std::optional<std::string> effort = fields.one_of(
      "reasoning_effort", {"none", "minimal", "low", "medium", "high", "xhigh", "max"}
  );
  if (effort && !kwargs.contains("enable_thinking")) {
    kwargs["enable_thinking"] = *effort != "none" && *effort != "minimal";
  }
  if (effort && !kwargs.contains("reasoning_effort")) {
    kwargs["reasoning_effort"] = *effort;
  }
  return kwargs;
}

void refuse_modalities(Fields& fields) {
  const std::optional<Field> modalities = fields.find("modalities");
  if (modalities && modalities->value != Json::array({"text"})) {
    refuse(modalities->path, shown(modalities->value), R"(["text"])");
  }
}

void refuse_other_answers(Fields& fields) {
  fields.refuse_present("functions", "tools instead");
  fields.refuse_present("function_call", "tool_choice instead");
  fields.refuse_present("audio", "no answer in sound");
  refuse_modalities(fields);
}

void read_prompt_parts(Fields& fields, const RequestLimits& limits, ChatCompletionRequest& read) {
  read.conversation = read_chat_messages(fields.require("messages"), limits);
  read.tools = read_tool_fields(fields, limits);
  read.template_kwargs = read_template_variables(fields);
}

}  // namespace

Json read_template_kwargs(Fields& fields) {
  const std::optional<Field> field = fields.find("chat_template_kwargs");
  if (!field) {
    return Json::object();
  }
  to_object(*field);
  for (const auto& item : field->value.items()) {
    if (std::ranges::count(kInternals, item.key()) > 0) {
      refuse(
          field->path + "." + item.key(), "a variable of the server", "one of the template's own"
      );
    }
  }
  return field->value;
}

ResponseFormat read_response_format(Fields& fields) {
  const std::optional<Field> field = fields.find("response_format");
  if (!field) {
    return {};
  }
  Fields parts(field->value, field->path);
  parts.require("type");
  const std::string type = *parts.one_of("type", {"text", "json_object", "json_schema"});
  if (type == "json_schema") {
    return read_json_schema(parts.require("json_schema"));
  }
  if (type == "json_object") {
    const std::optional<Field> schema = parts.find("schema");
    return schema ? schema_format(*schema) : ResponseFormat{ResponseFormat::Kind::json_object};
  }
  return {};
}

ChatCompletionRequest parse_chat_request(std::string_view body, const RequestLimits& limits) {
  const Json json = parse_body(body, limits);
  Fields fields(json);
  ChatCompletionRequest read;
  read_prompt_parts(fields, limits, read);
  read.generation = read_generation_fields(fields, limits);
  read.format = read_response_format(fields);
  read_logprobs(fields, limits, read);
  refuse_other_answers(fields);
  if (read.format.kind != ResponseFormat::Kind::text && !read.tools.tools.empty()) {
    refuse(
        "response_format", "a form of the answer beside tools", R"(tool_choice "none" or no tools)"
    );
  }
  accept_without_effect(
      fields, {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"}
  );
  read.ignored = fields.unread();
  return read;
}

ChatCompletionRequest parse_template_request(std::string_view body, const RequestLimits& limits) {
  const Json json = parse_body(body, limits);
  Fields fields(json);
  ChatCompletionRequest read;
  read_prompt_parts(fields, limits, read);
  read.generation.model = fields.text("model").value_or("");
  read.ignored = fields.unread();
  return read;
}

}  // namespace whimbrel::wire
