#pragma once

#include "models/family.h"
#include "models/prompt.h"

namespace whimbrel {

/// Text tokens behind the picture of a bench prompt: a short question.
inline constexpr int kBenchQuestion = 16;

/// `tokens` random ids of a vocabulary. The same seed draws the same ones.
Prompt random_text(int tokens, int vocab_size, uint64_t seed);

/// The bounds and scale that a family's processor has where no file states others.
ImageProcessor default_processor(const MediaRules& rules);

/// A picture of noise, cut into patches.
Patches random_picture(Size size, const ImageProcessor& processor);

/// A prompt of that picture and a question of random ids.
Prompt random_picture_prompt(Patches patches, const MediaRules& rules, int vocab_size);

/// Tokens of such a prompt.
int picture_prompt_tokens(const Patches& patches, const MediaRules& rules);

}  // namespace whimbrel
