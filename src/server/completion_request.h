#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/generation_fields.h"

namespace whimbrel::wire {

/// A prompt as plain text, or as token ids (not checked against the vocabulary).
using TextPrompt = std::variant<std::string, std::vector<int32_t>>;

/// A body of POST /v1/completions.
struct CompletionRequest {
  GenerationFields generation = {};
  std::vector<TextPrompt> prompts = {};  // at least one, none empty
  bool echo = false;                     // each answer's text begins with its prompt
  std::optional<int> logprobs = {};      // of drawn tokens, and of so many of the best
  std::vector<std::string> ignored = {};
};

/// Reads and checks a body. Throws http::ApiException: 400 that names the field.
///
/// - `prompt`: a string, a list of strings, a list of token ids, or a list of such lists.
/// - `n_predict` is another name of `max_tokens`; absent is the rest of the context.
/// - Refused: a `suffix` that isn't empty, a `best_of` other than `n`, and `echo` with `logprobs`:
///   probabilities of prompt tokens are not computed.
CompletionRequest parse_completion_request(std::string_view body, const RequestLimits& limits);

/// A list of token ids at `path`.
std::vector<int32_t> read_token_ids(const Json& list, const std::string& path);

}  // namespace whimbrel::wire
