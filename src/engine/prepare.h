#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/frontend.h"
#include "engine/media_input.h"
#include "models/prompt.h"
#include "text/chat_template.h"

namespace whimbrel {

/// A conversation: `chat.messages` in the template's form, where each {"type":"image"} or
/// {"type":"video"} part stands for the next of `media`.
struct ChatInput {
  ChatRequest chat;
  std::vector<MediaInput> media;
};

/// A picture that MediaOptions::affordable_pixels or MediaInput::most_tokens made smaller.
struct ReducedPicture {
  std::string source;
  Size wanted;  // by the checkpoint
  Size taken;
};

/// A prompt, and the milliseconds that its media took.
struct Prepared {
  Prompt prompt;
  double media_decode = 0;
  double preprocess = 0;
  std::vector<ReducedPicture> reduced = {};
};

/// From messages and media to a model's input, on the host and without weights. Throws
/// Error(Fault::input): a picture or video that can't be read, a conversation that the template
/// refuses, a placeholder without picture or video or the reverse, nothing to answer at all; and
/// Error(Fault::usage) where `options` contradict the checkpoint or the media.
Prepared prepare_chat(
    const Frontend& frontend,
    const ChatTemplate& chat_template,
    const ChatInput& input,
    const MediaOptions& options = {}
);

/// The same for a prompt that is already in the model's own format, special tokens spelled out:
/// `<|image_pad|>` stands for one picture each, `<|video_pad|>` for one video.
Prepared prepare_raw(
    const Frontend& frontend,
    std::string_view text,
    const std::vector<MediaInput>& media,
    const MediaOptions& options = {}
);

/// The two steps of prepare_chat: a conversation in the template's words, and words to a model's
/// input.
RenderedPrompt render_chat(const ChatTemplate& chat_template, const ChatInput& input);
Prepared prepare_rendered(
    const Frontend& frontend,
    const RenderedPrompt& rendered,
    const std::vector<MediaInput>& media,
    const MediaOptions& options = {}
);

/// Plain text without template: nothing in it is a special token. Throws Error(Fault::input) where
/// it is empty or no UTF-8.
Prompt prepare_text(const Frontend& frontend, std::string_view text);

/// Token ids as they are. Throws Error(Fault::input) where there are none, or one outside of the
/// vocabulary.
Prompt prepare_ids(const Frontend& frontend, std::vector<int32_t> ids);

/// Throws Error(Fault::input) with both numbers where a prompt leaves no room for an answer.
void require_room(const Prompt& prompt, int context);

}  // namespace whimbrel
