#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "engine/memory_ledger.h"
#include "engine/prefix_key.h"
#include "engine/request.h"
#include "engine/step_plan.h"
#include "generate/answer_text.h"
#include "generate/prompt_lookup.h"
#include "generate/sampler.h"
#include "models/model.h"

namespace whimbrel {

/// A request on its way, shared by its answers.
struct RunningRequest {
  uint64_t id = 0;
  Request request;
  EventSink sink;
  PrefixKey key;
  std::vector<MemoryLedger::Share> shares = {};  // of memory
  int answer_room = 0;                           // tokens of each answer that they have room for
  std::vector<nn::Features> features = {};  // of each picture and video, once a tower has seen it
  std::vector<bool> encoded = {};
  std::vector<MediumReuse> reuse = {};
  int open_answers = 0;  // 0: not begun
  int told = 0;          // tokens of the prompt, of which it was said that they were read
  bool ended = false;    // its last event was sent
  Stopwatch since_submitted = {};
  Stopwatch since_admitted = {};
  Stopwatch since_first_token = {};
  RequestTimings timings = {};
};

/// One answer being made: everything that its steps change.
struct Sequence {
  uint64_t id = 0;
  std::shared_ptr<RunningRequest> request;
  int choice = 0;
  nn::KVCache cache;
  std::vector<int32_t> answer = {};  // drawn; the last one is not in the cache yet
  Sampler sampler;
  AnswerText text;
  std::optional<GrammarState> grammar = std::nullopt;  // once it holds
  std::optional<PromptLookup> lookup = std::nullopt;   // once it answers, where guesses are wanted
  std::vector<int32_t> draft =
      {};           // the answer's last token and what is guessed to follow; or none
  int guessed = 0;  // tokens, since the start
  int guessed_right = 0;

  int answered() const { return static_cast<int>(answer.size()); }
  const Prompt& prompt() const { return request->request.prompt; }
  bool reads_prompt() const { return cache.tokens() < prompt().tokens(); }
};

/// The first picture or video that has tokens from `token` on and that no tower has seen; the
/// number of media where there is none.
size_t next_medium(const RunningRequest& request, int token);

SequenceState state_of(const Sequence& sequence);

/// The forward's input for rows of a plan. Refers to the sequence's memory.
nn::Chunk chunk_of(const Sequence& sequence, const StepRows& rows);

}  // namespace whimbrel
