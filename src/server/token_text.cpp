#include "server/token_text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

namespace whimbrel::wire {

namespace {

constexpr int kTwoByteCharacters = 0x800;

/// Byte of each character of GPT-2's alphabet, -1 for others. Printable characters of Latin-1 stand
/// for themselves; the other bytes, in order, for the characters from U+0100 on.
std::array<int, 0x144> make_alphabet() {
  std::array<int, 0x144> byte_of = {};
  byte_of.fill(-1);
  int next = 0x100;
  for (int byte = 0; byte < 0x100; ++byte) {
    const bool is_printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    byte_of.at(static_cast<size_t>(is_printable ? byte : next++)) = byte;
  }
  return byte_of;
}

/// The alphabet's byte of the character that begins at `i`, which is moved behind it.
std::optional<char> next_byte(std::string_view spelling, size_t& i) {
  static const std::array<int, 0x144> alphabet = make_alphabet();
  const auto unit = [&](size_t at) { return static_cast<unsigned char>(spelling[at]); };
  int character = unit(i++);
  if ((character & 0xE0) == 0xC0 && i < spelling.size()) {
    character = ((character & 0x1F) << 6) | (unit(i++) & 0x3F);
  } else if (character >= 0x80) {
    return std::nullopt;
  }
  if (character >= kTwoByteCharacters || std::cmp_greater_equal(character, alphabet.size())) {
    return std::nullopt;
  }
  const int byte = alphabet.at(static_cast<size_t>(character));
  return byte < 0 ? std::nullopt : std::optional(static_cast<char>(byte));
}

Json bytes_json(std::string_view bytes) {
  Json list = Json::array();
  for (const char c : bytes) {
    list.push_back(static_cast<unsigned char>(c));
  }
  return list;
}

Json token_json(const TokenLogprob& token, const TokenBytes& token_bytes) {
  const std::string bytes = token_bytes(token.id);
  return {
      {"token", as_utf8(bytes)},
      {"bytes", bytes_json(bytes)},
      {"logprob", finite_logprob(token.logprob)}
  };
}

}  // namespace

TokenBytes token_bytes_of(const Tokenizer& tokenizer) {
  std::unordered_map<int32_t, std::string> added;
  for (const AddedToken& token : tokenizer.added_tokens()) {
    added.emplace(token.id, token.content);
  }
  return [&tokenizer, added = std::move(added)](int32_t id) {
    const auto found = added.find(id);
    return found != added.end() ? found->second
                                : bytes_of_spelling(tokenizer.id_to_token(id).value_or(""));
  };
}

std::string bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  for (size_t i = 0; i < spelling.size();) {
    const std::optional<char> byte = next_byte(spelling, i);
    if (!byte) {
      return std::string(spelling);
    }
    bytes += *byte;
  }
  return bytes;
}

std::string as_utf8(std::string_view bytes) {
  const std::string quoted = Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(quoted).get<std::string>();
}

int count_characters(std::string_view bytes) {
  return static_cast<int>(std::ranges::count_if(bytes, [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

double finite_logprob(float logprob) {
  constexpr double kLeast = -9999;
  return logprob >= kLeast ? static_cast<double>(logprob) : kLeast;
}

Json logprob_item(const AnswerToken& token, const TokenBytes& token_bytes) {
  const TokenLogprob drawn = token.logprob.value_or(TokenLogprob{.id = token.id});
  Json item = token_json(drawn, token_bytes);
  item["top_logprobs"] = Json::array();
  for (const TokenLogprob& top : token.top_logprobs) {
    item["top_logprobs"].push_back(token_json(top, token_bytes));
  }
  return item;
}

}  // namespace whimbrel::wire
