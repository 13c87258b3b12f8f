#pragma once

#include <string_view>

#include "server/chat_request.h"

namespace whimbrel::wire {

/// Reads a body of Anthropic's POST /v1/messages as the chat request that asks the same. Throws
/// http::ApiException: 400 that names the field as Anthropic spells it.
///
/// - `system`: a text, or a list of texts, which become lines of one system message.
/// - Content blocks: text, image (source base64 or url), tool_use, tool_result (text and images),
///   thinking. Results of tools become messages of their own in front of the rest. Others, such as
///   document and redacted_thinking, are refused; `is_error` changes nothing: the text says it.
/// - `tool_choice`: auto, any, tool (by name) and none; `disable_parallel_tool_use`.
/// - `thinking`: enabled and adaptive set the template's `enable_thinking`, disabled and absent
///   clear it. The `budget_tokens` change nothing.
/// - `output_config.format` (also `output_format`): a json_schema. Beside tools it is refused.
/// - Accepted without effect: metadata, service_tier, container, context_management, betas, and
///   `cache_control`: prefixes are kept anyway.
ChatCompletionRequest parse_messages_request(std::string_view body, const RequestLimits& limits);

/// The same for POST /v1/messages/count_tokens, where `max_tokens` isn't required.
ChatCompletionRequest parse_count_tokens_request(
    std::string_view body, const RequestLimits& limits
);

}  // namespace whimbrel::wire
