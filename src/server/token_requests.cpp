#include "server/token_requests.h"

#include "server/completion_request.h"

namespace whimbrel::wire {

namespace {

Json piece_json(const std::string& bytes) {
  if (as_utf8(bytes) == bytes) {
    return bytes;
  }
  Json list = Json::array();
  for (const char c : bytes) {
    list.push_back(static_cast<unsigned char>(c));
  }
  return list;
}

}  // namespace

TokenizeRequest parse_tokenize_request(std::string_view body, const RequestLimits& limits) {
  const Json json = parse_body(body, limits);
  Fields fields(json);
  TokenizeRequest read;
  read.content = to_text(fields.require("content"));
  read.add_special = fields.boolean("add_special").value_or(read.add_special);
  read.parse_special = fields.boolean("parse_special").value_or(read.parse_special);
  read.with_pieces = fields.boolean("with_pieces").value_or(read.with_pieces);
  return read;
}

Json tokens_json(std::span<const int32_t> ids) {
  return {{"tokens", Json(std::vector<int32_t>(ids.begin(), ids.end()))}};
}

Json token_pieces_json(std::span<const int32_t> ids, const TokenBytes& token_bytes) {
  Json tokens = Json::array();
  for (const int32_t id : ids) {
    tokens.push_back({{"id", id}, {"piece", piece_json(token_bytes(id))}});
  }
  return {{"tokens", std::move(tokens)}};
}

std::vector<int32_t> parse_detokenize_request(std::string_view body, const RequestLimits& limits) {
  const Json json = parse_body(body, limits);
  Fields fields(json);
  const Field tokens = fields.require("tokens");
  return read_token_ids(to_list(tokens), tokens.path);
}

Json content_json(std::string_view text) {
  return {{"content", text}};
}

Json prompt_json(std::string_view text) {
  return {{"prompt", text}};
}

}  // namespace whimbrel::wire
