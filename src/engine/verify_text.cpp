#include "engine/verify_text.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace whimbrel::verify {

namespace {

constexpr const char* kTokenizer = "tokenizer";
constexpr const char* kStopIds = "stop_ids";
constexpr const char* kTemplate = "template";

/// Where two texts part, in bytes.
size_t common_bytes(std::string_view left, std::string_view right) {
  const size_t shorter = std::min(left.size(), right.size());
  const auto [at, other] = std::mismatch(
      left.begin(), left.begin() + static_cast<std::ptrdiff_t>(shorter), right.begin()
  );
  return static_cast<size_t>(at - left.begin());
}

}  // namespace

CheckResult check_tokenizer(const Frontend& frontend) {
  const Tokenizer& tokenizer = frontend.tokenizer;
  const int vocab_size = frontend.shape.vocab_size;
  if (tokenizer.size() > vocab_size) {
    return failed(
        kTokenizer,
        fmt::format("got ids up to {}, expected ids below {}", tokenizer.size() - 1, vocab_size)
    );
  }
  size_t tokens = 0;
  for (const std::string_view text : plain_texts()) {
    const std::vector<int32_t> ids = tokenizer.encode_text(text);
    const std::string back = tokenizer.decode(ids, SpecialTokens::keep);
    if (back != text) {
      const size_t at = common_bytes(back, text);
      return failed(
          kTokenizer,
          fmt::format(
              "got \"{}\" back from its ids, expected \"{}\"",
              back.substr(at, 20),
              text.substr(at, 20)
          ),
          {{"byte", at}}
      );
    }
    tokens += ids.size();
  }
  return passed(
      kTokenizer,
      fmt::format("{} texts, {} tokens, the same texts back", plain_texts().size(), tokens),
      {{"texts", plain_texts().size()}, {"tokens", tokens}}
  );
}

CheckResult check_stop_ids(const Frontend& frontend) {
  const std::vector<int32_t>& ids = frontend.stop_ids;
  if (ids.empty()) {
    return failed(kStopIds, "got none, expected a token that ends an answer");
  }
  const auto is_unknown = [&frontend](int32_t id) {
    return id < 0 || id >= frontend.shape.vocab_size || !frontend.tokenizer.id_to_token(id);
  };
  const auto unknown = std::ranges::find_if(ids, is_unknown);
  const Json figures = {{"stop_ids", ids}};
  if (unknown != ids.end()) {
    return failed(
        kStopIds,
        fmt::format(
            "got {}, expected a token of the tokenizer below {}",
            *unknown,
            frontend.shape.vocab_size
        ),
        figures
    );
  }
  return passed(kStopIds, fmt::format("an answer ends with {}", fmt::join(ids, ", ")), figures);
}

TemplateCheck check_template(const Frontend& frontend, const ChatTemplate& chat_template) {
  try {
    Inputs inputs = make_inputs(frontend, chat_template);
    const size_t prompts = inputs.recorded().size() + (inputs.pictures ? 1 : 0);
    const int tokens = inputs.largest().tokens();
    CheckResult result = passed(
        kTemplate,
        fmt::format("{} prompts of up to {} tokens", prompts, tokens),
        {{"prompts", prompts}, {"largest_prompt_tokens", tokens}}
    );
    return {std::move(result), std::move(inputs)};
  } catch (const Error& error) {
    return {failed(kTemplate, error.what()), std::nullopt};
  }
}

}  // namespace whimbrel::verify
