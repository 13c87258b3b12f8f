#pragma once

#include <string_view>

#include "server/chat_request.h"

namespace whimbrel::wire {

/// A body of OpenAI's POST /v1/responses: the chat request that asks the same, and what the answer
/// repeats of it.
struct ResponsesRequest {
  ChatCompletionRequest chat = {};
  Json repeated =
      Json::object();  // fields of the answer, as the client wrote them or their default
};

/// Reads and checks a body. Throws http::ApiException: 400 that names the field. The subset:
///
/// - `input`: a text, or items: message (parts input_text, input_image, output_text),
///   function_call, function_call_output, reasoning (its content goes to the answer behind it).
/// - `instructions` is a system message in front.
/// - `tools` of type function, `tool_choice`, `parallel_tool_calls`, `text.format`,
///   `reasoning.effort`, `max_output_tokens`, `temperature`, `top_p`, `stream`.
/// - Nothing is stored: `previous_response_id`, `conversation`, `background: true`, `prompt` and
///   `truncation: "auto"` are refused; `store` is accepted, and the answer says false.
/// - Accepted without effect: metadata, user, service_tier, include, safety_identifier,
///   prompt_cache_key, stream_options.
ResponsesRequest parse_responses_request(std::string_view body, const RequestLimits& limits);

}  // namespace whimbrel::wire
