#include "engine/prepare.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "media/decode.h"
#include "nn/positions.h"

namespace whimbrel {

namespace {

int merged_tokens(const Patches& patches, const MediaRules& rules) {
  return static_cast<int>(patches.count) / (rules.layout.merge_size * rules.layout.merge_size);
}

/// Pictures cut into patches, and the milliseconds that took.
struct CutPictures {
  std::vector<Patches> patches;
  double media_decode = 0;
  double preprocess = 0;
};

CutPictures cut_pictures(const ImageProcessor& processor, const std::vector<MediaInput>& media) {
  CutPictures cut;
  for (const MediaInput& input : media) {
    const Stopwatch decoding;
    const Image image = decode_image(input.bytes, input.source);
    cut.media_decode += decoding.milliseconds();
    const Stopwatch preprocessing;
    cut.patches.push_back(preprocess_image(image, processor, input.source));
    cut.preprocess += preprocessing.milliseconds();
  }
  return cut;
}

void require_placeholders(
    const std::vector<int32_t>& ids, const MediaRules& rules, size_t pictures
) {
  const auto placeholders = static_cast<size_t>(std::ranges::count(ids, rules.image_token_id));
  if (placeholders != pictures) {
    throw Error(
        Fault::input,
        "prompt",
        "got {} picture placeholders for {} pictures, expected one each; a raw prompt has to spell "
        "them, and a chat template has to write them",
        placeholders,
        pictures
    );
  }
  if (std::ranges::count(ids, rules.video_token_id) != 0) {
    throw Error(Fault::input, "prompt", "got a video placeholder, expected none without a video");
  }
}

/// The prompt without positions: each placeholder as often as its picture has tokens.
Prompt expand_placeholders(
    const std::vector<int32_t>& ids,
    const std::vector<MediaInput>& media,
    std::vector<Patches> patches,
    const MediaRules& rules
) {
  Prompt prompt;
  for (const int32_t id : ids) {
    if (id != rules.image_token_id) {
      prompt.ids.push_back(id);
      continue;
    }
    const size_t index = prompt.media.size();
    const int tokens = merged_tokens(patches[index], rules);
    prompt.media.push_back(
        {media[index].source, prompt.tokens(), tokens, std::move(patches[index])}
    );
    prompt.ids.insert(prompt.ids.end(), static_cast<size_t>(tokens), id);
  }
  return prompt;
}

std::vector<nn::VisionBlock> vision_blocks(const Prompt& prompt, const MediaRules& rules) {
  std::vector<nn::VisionBlock> blocks;
  for (const MediaSpan& span : prompt.media) {
    const auto [frames, height, width] = span.patches.grid_thw;
    const int merge = rules.layout.merge_size;
    blocks.push_back(
        {span.first,
         height / merge,
         width / merge,
         std::vector<int32_t>(static_cast<size_t>(frames), 0)}
    );
  }
  return blocks;
}

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
        "got a picture, expected text only: the checkpoint has no vision tower; use a vision "
        "model, "
        "or a conversion that keeps its tower"
    );
  }
  Prompt prompt{.ids = ids, .media = {}, .positions = {}};
  prompt.positions = nn::mrope_positions(prompt.tokens(), {});
  return {std::move(prompt)};
}

Prepared assemble(
    const Frontend& frontend, const std::vector<int32_t>& ids, const std::vector<MediaInput>& media
) {
  require_known_ids(ids, frontend.shape.vocab_size);
  if (!frontend.media) {
    return assemble_text(ids, media);
  }
  require_placeholders(ids, *frontend.media, media.size());
  CutPictures cut = cut_pictures(*frontend.image_processor, media);
  Prompt prompt = expand_placeholders(ids, media, std::move(cut.patches), *frontend.media);
  prompt.positions = nn::mrope_positions(prompt.tokens(), vision_blocks(prompt, *frontend.media));
  return {std::move(prompt), cut.media_decode, cut.preprocess};
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
        Fault::input, "prompt", "got neither text nor a picture, expected something to answer"
    );
  }
}

}  // namespace

Prepared prepare_chat(
    const Frontend& frontend, const ChatTemplate& chat_template, const ChatInput& input
) {
  require_something_said(input);
  const RenderedPrompt rendered = chat_template.render(input.chat);
  return assemble(frontend, frontend.tokenizer.encode_prompt(rendered), input.media);
}

Prepared prepare_raw(
    const Frontend& frontend, std::string_view text, const std::vector<MediaInput>& media
) {
  if (text.empty()) {
    throw Error(Fault::input, "prompt", "got an empty prompt, expected at least one character");
  }
  const RenderedPrompt rendered{.marked = std::string(text)};
  return assemble(frontend, frontend.tokenizer.encode_prompt(rendered), media);
}

void require_room(const Prompt& prompt, int context) {
  if (prompt.tokens() >= context) {
    throw Error(
        Fault::input,
        "prompt",
        "got {} tokens, expected fewer than the context of {}; shorten the text or use smaller "
        "pictures",
        prompt.tokens(),
        context
    );
  }
}

}  // namespace whimbrel
