#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace whimbrel {

namespace textkit {
class DetokenizerHandle;  // text/textkit_handle.h
}

/// Turns ids into text as they come. What push and finish return, put together, equals
/// Tokenizer::decode of all ids; no piece ends inside a UTF-8 character; the cost of a push depends
/// on its token alone. For one thread; move only.
class StreamingDetokenizer {
 public:
  StreamingDetokenizer(const Tokenizer& tokenizer, SpecialTokens special_tokens);
  ~StreamingDetokenizer();
  StreamingDetokenizer(StreamingDetokenizer&&) noexcept;
  StreamingDetokenizer& operator=(StreamingDetokenizer&&) noexcept;

  /// The text that is complete with this id; may be empty. Throws Error(Fault::input) on an id
  /// without token.
  std::string push(int32_t id);

  /// The rest: U+FFFD where the last character stayed incomplete. Ready for a new text afterwards.
  std::string finish();

 private:
  std::unique_ptr<textkit::DetokenizerHandle> handle_;
};

}  // namespace whimbrel
