#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/chat_messages.h"
#include "server/generation_fields.h"
#include "server/tool_fields.h"

namespace whimbrel::wire {

/// What form an answer's text must have.
struct ResponseFormat {
  enum class Kind { text, json_object, json_schema };
  Kind kind = Kind::text;
  Json schema =
      nullptr;  // of json_schema: an object; whether it can be kept is the grammar's to say
};

/// A body of POST /v1/chat/completions.
struct ChatCompletionRequest {
  GenerationFields generation = {};
  ChatMessages conversation = {};
  ToolFields tools = {};
  ResponseFormat format = {};
  bool logprobs = false;
  int top_logprobs = 0;
  Json template_kwargs = Json::object();
  std::vector<std::string> ignored = {};  // fields we don't know, for the log
};

/// Reads and checks a body. Throws http::ApiException: 400 that names the field.
///
/// - A json_object with a `schema` is a json_schema. A form beside tools is refused unless
///   `tool_choice` is "none": an answer keeps one grammar.
/// - `reasoning_effort` sets the template's `enable_thinking` (none and minimal: off, others: on)
///   where `chat_template_kwargs` doesn't, and is the template's `reasoning_effort`.
/// - Accepted without effect: user, metadata, store, service_tier, safety_identifier,
///   prompt_cache_key. Refused, for an answer would be another: functions, function_call, audio,
///   and modalities other than text.
ChatCompletionRequest parse_chat_request(std::string_view body, const RequestLimits& limits);

/// The same of the parts that a prompt is made of: messages, tools, template variables. For
/// POST /apply-template.
ChatCompletionRequest parse_template_request(std::string_view body, const RequestLimits& limits);

/// `chat_template_kwargs`: an object that names none of the template's own variables.
Json read_template_kwargs(Fields& fields);

/// `response_format`.
ResponseFormat read_response_format(Fields& fields);

}  // namespace whimbrel::wire
