#include "engine/draw_token.h"

#include <algorithm>
#include <cmath>

#include "generate/logprobs.h"

namespace whimbrel {

namespace {

/// A bit for each id (Sampler::draw).
std::vector<uint32_t> all_but(std::span<const int32_t> forbidden, int32_t vocabulary) {
  std::vector<uint32_t> mask(static_cast<size_t>(vocabulary / 32 + 1), ~uint32_t{0});
  for (const int32_t id : forbidden) {
    if (id >= 0 && id < vocabulary) {
      mask[static_cast<size_t>(id / 32)] &= ~(uint32_t{1} << (id % 32));
    }
  }
  return mask;
}

bool are_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
}

int32_t draw_id(Sequence& sequence, const RankedLogits& logits, int32_t vocabulary) {
  const Request& asked = sequence.request->request;
  const bool begins = sequence.answer.empty() && !asked.reasoning_end;
  if (asked.grammar && begins) {
    sequence.grammar.emplace(*asked.grammar);
  }
  if (!asked.grammar) {
    return sequence.sampler.draw(logits);
  }
  if (!sequence.grammar) {
    // An end inside of the reasoning would be an answer that keeps no grammar.
    const int32_t id = sequence.sampler.draw(logits, all_but(asked.stop_ids, vocabulary));
    if (id == asked.reasoning_end) {
      sequence.grammar.emplace(*asked.grammar);
    }
    return id;
  }
  const int32_t id = sequence.sampler.draw(logits, sequence.grammar->allowed());
  sequence.grammar->accept(id);
  return id;
}

}  // namespace

SamplingOptions sampling_of(const Request& request, int choice) {
  SamplingOptions options = request.sampling;
  if (options.seed) {
    *options.seed += static_cast<uint64_t>(choice);
  }
  return options;
}

AnswerToken draw_token(Sequence& sequence, const RankedLogits& logits, int32_t vocabulary) {
  AnswerToken token{.choice = sequence.choice};
  const std::optional<int>& top = sequence.request->request.top_logprobs;
  if (!top || !are_finite(logits.peaks)) {  // what isn't finite the sampler refuses
    token.id = draw_id(sequence, logits, vocabulary);
    return token;
  }
  const auto known = std::min(logits.logits.size(), static_cast<size_t>(vocabulary));
  const LogProbabilities probabilities(logits.logits.first(known), *top);
  token.id = draw_id(sequence, logits, vocabulary);
  token.logprob = probabilities.of(token.id);
  token.top_logprobs = probabilities.top();
  return token;
}

}  // namespace whimbrel
