#pragma once

#include <optional>

#include "server/chat_messages.h"

namespace whimbrel::wire {

/// The `instructions` and `input` of a /v1/responses body as a conversation in the form of chat
/// completions. Media are named where they stand in the request:
/// `input[0].content[1].image_url`. Throws http::ApiException (400) that names the field.
ChatMessages read_responses_input(
    const std::optional<std::string>& instructions, const Field& input, const RequestLimits& limits
);

}  // namespace whimbrel::wire
