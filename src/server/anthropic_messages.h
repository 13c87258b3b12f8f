#pragma once

#include <optional>

#include "server/chat_messages.h"

namespace whimbrel::wire {

/// Anthropic's `system` and `messages` as a conversation in OpenAI's form. Media are named where
/// they stand in the request: `messages[0].content[1].source`. Throws http::ApiException (400) that
/// names the field.
ChatMessages read_anthropic_messages(
    const std::optional<Field>& system, const Field& messages, const RequestLimits& limits
);

}  // namespace whimbrel::wire
