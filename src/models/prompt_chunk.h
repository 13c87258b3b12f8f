#pragma once

#include <span>

#include "models/prompt.h"
#include "nn/chunk.h"

namespace whimbrel {

/// Tokens [first, end) of a prompt. `features` holds the tower's output of each of its media; a
/// chunk that cuts a picture or video takes the rows that lie inside it.
nn::Chunk prompt_chunk(
    const Prompt& prompt, std::span<const nn::Features> features, int first, int end
);

/// Tokens of an answer behind `cached` tokens of a sequence that began with `prompt`.
nn::Chunk answer_chunk(const Prompt& prompt, int cached, std::span<const int32_t> ids);

/// One token behind `cached` tokens of a sequence that began with `prompt`: the decode step.
nn::Chunk next_chunk(const Prompt& prompt, int cached, const int32_t& id);
nn::Chunk next_chunk(const Prompt& prompt, int cached, int32_t&& id) = delete;  // would be gone

}  // namespace whimbrel
