#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "engine/request.h"
#include "text/tokenizer.h"

namespace whimbrel::wire {

/// The bytes a token stands for; they need not be whole characters.
using TokenBytes = std::function<std::string(int32_t id)>;

/// Of a tokenizer, which must outlive it. An id without token has none.
TokenBytes token_bytes_of(const Tokenizer& tokenizer);

/// The bytes of a token that is spelled in GPT-2's alphabet of bytes, in which each byte has a
/// character of its own. A spelling outside of it is its own bytes.
std::string bytes_of_spelling(std::string_view spelling);

/// Bytes as text: what is no UTF-8 becomes U+FFFD.
std::string as_utf8(std::string_view bytes);

/// Characters that begin in these bytes.
int count_characters(std::string_view bytes);

/// A logarithm that JSON can hold: at least -9999, which OpenAI uses for the least likely.
double finite_logprob(float logprob);

/// An item of a chat completion's `logprobs.content`: token, bytes, logprob and top_logprobs.
Json logprob_item(const AnswerToken& token, const TokenBytes& token_bytes);

}  // namespace whimbrel::wire
