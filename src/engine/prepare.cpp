#include "engine/prepare.h"

#include <algorithm>

#include "base/error.h"
#include "engine/cut_media.h"
#include "engine/placeholders.h"
#include "nn/positions.h"

namespace whimbrel {

namespace {

/// A model has no row for an id beyond its table, and nothing to say to a prompt without tokens.
void require_known_ids(const std::vector<int32_t>& ids, int vocab_size) {
  if (ids.empty()) {
    throw Error(
        Fault::input, "prompt", "got no tokens, expected at least one; is the chat template empty?"
    );
  }
  const int32_t largest = *std::ranges::max_element(ids);
  if (largest >= vocab_size) {
    throw Error(
        Fault::model,
        "tokenizer.json",
        "got token id {}, expected ids below the vocab_size of {}; tokenizer and weights are of "
        "different models",
        largest,
        vocab_size
    );
  }
}

Prepared assemble_text(const std::vector<int32_t>& ids, const std::vector<MediaInput>& media) {
  if (!media.empty()) {
    throw Error(
        Fault::input,
        media.front().source,
        "got a picture or video, expected text only: the checkpoint has no vision tower; use a "
        "vision model, "
        "or a conversion that keeps its tower"
    );
  }
  Prompt prompt{.ids = ids, .media = {}, .positions = {}};
  prompt.positions = nn::mrope_positions(prompt.tokens(), {});
  return {.prompt = std::move(prompt)};
}

std::vector<std::vector<double>> video_seconds(const std::vector<CutMedium>& media) {
  std::vector<std::vector<double>> seconds;
  for (const CutMedium& medium : media) {
    if (medium.kind == MediaKind::video) {
      seconds.push_back(medium.seconds);
    }
  }
  return seconds;
}

std::vector<ReducedPicture> reduced_pictures(const std::vector<CutMedium>& media) {
  std::vector<ReducedPicture> reduced;
  for (const CutMedium& medium : media) {
    if (medium.kind == MediaKind::image && medium.wanted != medium.patches.resized) {
      reduced.push_back({medium.source, medium.wanted, medium.patches.resized});
    }
  }
  return reduced;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

bool has_text(const Json& content) {
  if (content.is_string()) {
    return !is_blank(content.get_ref<const std::string&>());
  }
  return content.is_array() && std::ranges::any_of(content, [](const Json& part) {
           return part.contains("text") && has_text(part["text"]);
         });
}

void require_something_said(const ChatInput& input) {
  const bool said = std::ranges::any_of(input.chat.messages, [](const Json& message) {
    return message.contains("content") && has_text(message["content"]);
  });
  if (!said && input.media.empty()) {
    throw Error(
        Fault::input,
        "prompt",
        "got neither text nor a picture or video, expected something to answer; give -p TEXT or "
        "--image FILE"
    );
  }
}

}  // namespace

RenderedPrompt render_chat(const ChatTemplate& chat_template, const ChatInput& input) {
  require_something_said(input);
  return chat_template.render(input.chat);
}

Prepared prepare_rendered(
    const Frontend& frontend,
    const RenderedPrompt& rendered,
    const std::vector<MediaInput>& media,
    const MediaOptions& options
) {
  const Tokenizer& tokenizer = frontend.tokenizer;
  std::vector<int32_t> ids = tokenizer.encode_prompt(rendered);
  require_known_ids(ids, frontend.shape.vocab_size);
  if (!frontend.media) {
    return assemble_text(ids, media);
  }
  const MediaRules& rules = *frontend.media;
  require_placeholders(ids, media, rules);
  CutMedia cut = cut_media(frontend, media, options);
  if (rules.video_timing == VideoTiming::timestamped) {
    // The times are text: they are tokenised together with what stands in front of them.
    ids = tokenizer.encode_prompt(with_times(rendered, video_seconds(cut.media), rules, tokenizer));
  }
  std::vector<ReducedPicture> reduced = reduced_pictures(cut.media);
  Prompt prompt = expand_placeholders(ids, std::move(cut.media), rules);
  return {std::move(prompt), cut.media_decode, cut.preprocess, std::move(reduced)};
}

Prepared prepare_chat(
    const Frontend& frontend,
    const ChatTemplate& chat_template,
    const ChatInput& input,
    const MediaOptions& options
) {
  return prepare_rendered(frontend, render_chat(chat_template, input), input.media, options);
}

Prepared prepare_raw(
    const Frontend& frontend,
    std::string_view text,
    const std::vector<MediaInput>& media,
    const MediaOptions& options
) {
  if (text.empty()) {
    throw Error(
        Fault::input, "prompt", "got an empty prompt, expected at least one character; give -p TEXT"
    );
  }
  const RenderedPrompt rendered{.marked = std::string(text)};
  return prepare_rendered(frontend, rendered, media, options);
}

Prompt prepare_text(const Frontend& frontend, std::string_view text) {
  if (text.empty()) {
    throw Error(Fault::input, "text", "got an empty text, expected at least one character");
  }
  return prepare_ids(frontend, frontend.tokenizer.encode_text(text));
}

Prompt prepare_ids(const Frontend& frontend, std::vector<int32_t> ids) {
  if (ids.empty()) {
    throw Error(Fault::input, "prompt", "got no tokens, expected at least one");
  }
  const auto [least, largest] = std::ranges::minmax(ids);
  const int end = frontend.shape.vocab_size;
  if (least < 0 || largest >= end) {
    const int32_t wrong = least < 0 ? least : largest;
    throw Error(
        Fault::input, "prompt", "got token {}, expected tokens from 0 to {}", wrong, end - 1
    );
  }
  Prompt prompt{.ids = std::move(ids), .media = {}, .positions = {}};
  prompt.positions = nn::mrope_positions(prompt.tokens(), {});
  return prompt;
}

void require_room(const Prompt& prompt, int context) {
  if (prompt.tokens() >= context) {
    throw Error(
        Fault::input,
        "prompt",
        "got {} tokens, expected fewer than the context of {} (--ctx); {}",
        prompt.tokens(),
        context,
        prompt.media.empty() ? "shorten the text" : "shorten the text or use smaller pictures"
    );
  }
}

}  // namespace whimbrel
