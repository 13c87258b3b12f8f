#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/rendered_prompt.h"

namespace whimbrel {

namespace textkit {
class TokenizerHandle;  // text/textkit_handle.h
}

/// Whether decoded text shows tokens that the tokenizer flags as special (`<|im_end|>`). Added
/// tokens without that flag (`<think>`, `<tool_call>`) are always shown.
enum class SpecialTokens { keep, skip };

/// A token that stands beside the tokenizer's model: `<|im_start|>`, `<think>`.
struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;
};

/// A checkpoint's byte-level BPE tokenizer (Hugging Face `tokenizers`, read from tokenizer.json).
/// Const after load; copies share it; usable from several threads at once.
class Tokenizer {
 public:
  /// Reads tokenizer.json, and tokenizer_config.json where there is one, from a checkpoint folder.
  /// Throws Error(Fault::model).
  static Tokenizer load(const std::filesystem::path& folder);

  /// Ids of a rendered template: the template's own special tokens become their ids, marked text
  /// stays text. Equal to transformers' `tokenizer(text)` where no text is marked.
  std::vector<int32_t> encode_prompt(const RenderedPrompt& prompt) const;

  /// Ids of plain text (UTF-8): no added token is recognised in it.
  /// Throws Error(Fault::input) on invalid UTF-8.
  std::vector<int32_t> encode_text(std::string_view text) const;

  /// Text of ids; invalid UTF-8 becomes U+FFFD. Throws Error(Fault::input) on an id without token.
  std::string decode(std::span<const int32_t> ids, SpecialTokens special_tokens) const;

  /// The id of a token or added token, spelled as in tokenizer.json.
  std::optional<int32_t> token_to_id(std::string_view token) const;

  /// The token of an id, spelled as in tokenizer.json (bytes in the GPT-2 alphabet).
  std::optional<std::string> id_to_token(int32_t id) const;

  /// The fewest tokens that a text of so many bytes has, whatever it says; 0 where this tokenizer
  /// gives no bound.
  uint64_t least_tokens(size_t bytes) const { return most_bytes_ == 0 ? 0 : bytes / most_bytes_; }

  /// 1 + the highest id, added tokens included. Logits from here on belong to no token.
  int32_t size() const { return size_; }

  /// The id of tokenizer_config.json's "eos_token", where it names a token.
  std::optional<int32_t> eos() const { return eos_; }

  /// All added tokens, by ascending id.
  const std::vector<AddedToken>& added_tokens() const { return added_tokens_; }

 private:
  friend class ChatTemplate;
  friend class GrammarCompiler;
  friend class StreamingDetokenizer;

  Tokenizer() = default;

  std::shared_ptr<const textkit::TokenizerHandle> handle_;
  std::vector<AddedToken> added_tokens_;
  int32_t size_ = 0;
  size_t most_bytes_ = 0;  // of a text that become one token; 0: no bound
  std::optional<int32_t> eos_;
};

}  // namespace whimbrel
