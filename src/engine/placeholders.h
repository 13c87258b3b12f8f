#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cut_media.h"
#include "models/family.h"
#include "models/prompt.h"
#include "text/rendered_prompt.h"
#include "text/tokenizer.h"

namespace whimbrel {

/// Throws Error(Fault::input) unless a rendered prompt has one placeholder for each picture and one
/// for each video.
void require_placeholders(
    const std::vector<int32_t>& ids, const std::vector<MediaInput>& media, const MediaRules& rules
);

/// The prompt with each video's placeholder replaced by one for each of its temporal patches, each
/// between vision tokens of its own and behind its time: `<1.5 seconds>`. The pair that a template
/// writes around the video stays around the whole, as in transformers' Qwen3VLProcessor since 5.12
/// (before, it was replaced too). `videos` hold the times in the order of the placeholders.
RenderedPrompt with_times(
    const RenderedPrompt& prompt,
    const std::vector<std::vector<double>>& videos,
    const MediaRules& rules,
    const Tokenizer& tokenizer
);

/// The prompt with each placeholder as often as what it stands for has tokens, and with positions.
/// Pictures and videos are taken in the order of their own placeholders.
Prompt expand_placeholders(
    const std::vector<int32_t>& ids, std::vector<CutMedium> media, const MediaRules& rules
);

}  // namespace whimbrel
