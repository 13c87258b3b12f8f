#include "text/detokenizer.h"

#include "text/textkit_handle.h"

namespace whimbrel {

namespace {

constexpr std::string_view kWhere = "detokenizer";

}  // namespace

StreamingDetokenizer::StreamingDetokenizer(
    const Tokenizer& tokenizer, SpecialTokens special_tokens
) {
  const bool skip = special_tokens == SpecialTokens::skip;
  textkit_detokenizer* detokenizer = nullptr;
  textkit::check(
      textkit_detokenizer_new(tokenizer.handle_->get(), skip, &detokenizer), Fault::input, kWhere
  );
  handle_ = std::make_unique<textkit::DetokenizerHandle>(detokenizer);
}

StreamingDetokenizer::~StreamingDetokenizer() = default;
StreamingDetokenizer::StreamingDetokenizer(StreamingDetokenizer&&) noexcept = default;
StreamingDetokenizer& StreamingDetokenizer::operator=(StreamingDetokenizer&&) noexcept = default;

std::string StreamingDetokenizer::push(int32_t id) {
  textkit_text text{};
  textkit::check(textkit_detokenizer_push(handle_->get(), id, &text), Fault::input, kWhere);
  return textkit::take(text);
}

std::string StreamingDetokenizer::finish() {
  textkit_text text{};
  textkit::check(textkit_detokenizer_finish(handle_->get(), &text), Fault::input, kWhere);
  return textkit::take(text);
}

}  // namespace whimbrel
