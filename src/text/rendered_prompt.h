#pragma once

#include <string>

namespace whimbrel {

/// A rendered chat template. Where text of a message spells an added token of the tokenizer, a
/// marker stands inside it, so that only the template's own text yields special tokens.
struct RenderedPrompt {
  std::string marked;   // UTF-8, with markers
  char32_t marker = 0;  // a noncharacter of U+FDD0..U+FDEF; 0 where nothing had to be marked

  /// The prompt as transformers would render it: `marked` without its markers.
  std::string text() const;
};

}  // namespace whimbrel
