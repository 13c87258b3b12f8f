#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/fields.h"
#include "server/token_text.h"

namespace whimbrel::wire {

/// A body of POST /tokenize, as llama-server's.
struct TokenizeRequest {
  std::string content = {};
  bool add_special = false;   // begin with the checkpoint's begin token
  bool parse_special = true;  // special tokens that are spelled in the text become their ids
  bool with_pieces = false;
};

/// Throws http::ApiException: 400 that names the field.
TokenizeRequest parse_tokenize_request(std::string_view body, const RequestLimits& limits);

/// `{"tokens":[1,2]}`; with pieces `{"tokens":[{"id":1,"piece":"a"}]}`, where a piece that is no
/// UTF-8 is a list of its bytes.
Json tokens_json(std::span<const int32_t> ids);
Json token_pieces_json(std::span<const int32_t> ids, const TokenBytes& token_bytes);

/// The ids of a body of POST /detokenize, `{"tokens":[1,2]}`; not checked against the vocabulary.
/// Throws http::ApiException: 400 that names the field.
std::vector<int32_t> parse_detokenize_request(std::string_view body, const RequestLimits& limits);

/// `{"content":"…"}`, the answer of POST /detokenize.
Json content_json(std::string_view text);

/// `{"prompt":"…"}`, the answer of POST /apply-template.
Json prompt_json(std::string_view text);

}  // namespace whimbrel::wire
