#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generate/stop_text.h"
#include "text/detokenizer.h"

namespace whimbrel {

/// The text of one answer's tokens as it comes: no piece ends inside a character, and what could
/// still become a stop text is held back. All pieces together are the answer.
class AnswerText {
 public:
  /// Throws Error(Fault::usage) on an empty stop text.
  AnswerText(const Tokenizer& tokenizer, const std::vector<std::string>& stops)
      : detokenizer_(tokenizer, SpecialTokens::skip), stop_text_(stops) {}

  /// The text that is safe to pass on with this token.
  std::string push(int32_t id) { return stop_text_.push(detokenizer_.push(id)); }

  /// The rest, when the answer ends.
  std::string finish() {
    std::string rest = stop_text_.push(detokenizer_.finish());
    return rest + stop_text_.finish();
  }

  /// Whether a stop text came: the answer ended in front of it.
  bool stopped() const { return stop_text_.stopped(); }

  /// The stop text that came.
  std::optional<std::string> stop() const {
    return stopped() ? std::optional(stop_text_.matched()) : std::nullopt;
  }

 private:
  StreamingDetokenizer detokenizer_;
  StopText stop_text_;
};

}  // namespace whimbrel
