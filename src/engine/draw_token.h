#pragma once

#include "engine/sequence.h"

namespace whimbrel {

/// The options of one of a request's answers. Each has random numbers of its own, the first one
/// those of a request for one answer.
SamplingOptions sampling_of(const Request& request, int choice);

/// Draws a sequence's next token from a row's logits, by its sampler and, once it holds, its
/// grammar; with log probabilities where they were asked for. `vocabulary` is the tokenizer's size.
/// Throws as Sampler::draw and GrammarState do.
AnswerToken draw_token(Sequence& sequence, const RankedLogits& logits, int32_t vocabulary);

}  // namespace whimbrel
