#pragma once

#include <string>
#include <string_view>

namespace whimbrel::http {

/// Ends a stream of OpenAI's APIs.
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

/// A frame of an event stream: `data: …`, a line of it for each line of `data`.
std::string sse_data(std::string_view data);

/// The same behind `event: NAME`. Throws std::logic_error where the name holds a line end.
std::string sse_event(std::string_view name, std::string_view data);

/// A comment, which clients skip. Throws std::logic_error where the text holds a line end.
std::string sse_comment(std::string_view text);

}  // namespace whimbrel::http
