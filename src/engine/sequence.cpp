#include "engine/sequence.h"

#include <algorithm>

#include "models/prompt_chunk.h"

namespace whimbrel {

size_t next_medium(const RunningRequest& request, int token) {
  const std::vector<MediaSpan>& media = request.request.prompt.media;
  size_t i = 0;
  while (i < media.size() && (request.encoded[i] || media[i].end_token() <= token)) {
    ++i;
  }
  return i;
}

SequenceState state_of(const Sequence& sequence) {
  const Prompt& prompt = sequence.prompt();
  const int cached = sequence.cache.tokens();
  const size_t medium = next_medium(*sequence.request, cached);
  return {
      .id = sequence.id,
      .tokens = prompt.tokens(),
      .ready = medium < prompt.media.size() ? std::max(cached, prompt.media[medium].first_token())
                                            : prompt.tokens(),
      .cached = cached,
      .answer = sequence.answered(),
      .guesses = std::max(0, static_cast<int>(sequence.draft.size()) - 1),
  };
}

nn::Chunk chunk_of(const Sequence& sequence, const StepRows& rows) {
  const Prompt& prompt = sequence.prompt();
  if (rows.first < prompt.tokens()) {
    return prompt_chunk(prompt, sequence.request->features, rows.first, rows.end);
  }
  const bool has_guesses = rows.end > prompt.tokens() + sequence.answered();
  const std::span<const int32_t> ids = has_guesses ? sequence.draft : sequence.answer;
  const int first = has_guesses ? 0 : rows.first - prompt.tokens();
  return answer_chunk(
      prompt,
      rows.first,
      ids.subspan(static_cast<size_t>(first), static_cast<size_t>(rows.end - rows.first))
  );
}

}  // namespace whimbrel
