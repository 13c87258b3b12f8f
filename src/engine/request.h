#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "generate/logprobs.h"
#include "generate/sampler.h"
#include "models/prompt.h"
#include "text/grammar.h"

namespace whimbrel {

/// What a serving engine is asked for: a prompt, and how to answer it.
struct Request {
  Prompt prompt;
  SamplingOptions sampling = {};
  int max_tokens = 0;                             // of each answer, at least 1
  std::vector<int32_t> stop_ids = {};             // tokens that end an answer
  std::vector<std::string> stops = {};            // texts that end an answer
  int choices = 1;                                // answers that share the prompt (OpenAI's n)
  std::optional<Grammar> grammar = std::nullopt;  // that each answer keeps
  /// Where an answer begins with reasoning: the token that ends it. The grammar holds from there.
  std::optional<int32_t> reasoning_end = std::nullopt;
  /// Log probabilities of drawn tokens and of so many of the best; nothing: none are reported.
  std::optional<int> top_logprobs = std::nullopt;
  /// Whose requests this one may share prefixes and pictures with, such as an API key's digest.
  std::string scope = {};
};

/// The request left the queue: what of its prompt need not be computed.
struct Admitted {
  int prompt_tokens = 0;
  int cached_tokens = 0;
  std::string not_cached = {};  // why no more of it was reused, for people
};

struct PromptProgress {
  int done = 0;  // tokens, cached ones included
  int total = 0;
};

/// A drawn token. Text comes when it is complete and can no longer become a stop text, so it may be
/// empty, or hold that of tokens before.
struct AnswerToken {
  int choice = 0;
  int32_t id = 0;
  std::string text = {};
  std::optional<TokenLogprob> logprob = std::nullopt;  // where they were asked for
  std::vector<TokenLogprob> top_logprobs = {};         // best first
};

enum class AnswerEnd { stop, length };

/// An answer is complete.
struct AnswerFinished {
  int choice = 0;
  AnswerEnd reason = AnswerEnd::stop;
  std::string text = {};                                // the last piece
  std::optional<std::string> stop_text = std::nullopt;  // the one that ended it
  int tokens = 0;                                       // drawn, the end token not counted
  int guessed = 0;  // tokens that were guessed before they were drawn (PromptLookup)
  int guessed_right = 0;
};

/// Milliseconds.
struct RequestTimings {
  double queue = 0;
  double tower = 0;
  double prefill = 0;
  double decode = 0;  // behind the first token
};

/// What of a picture or video was there already: nothing, what its tower made of it, or even the
/// keys and values of all its tokens.
enum class MediumReuse { none, features, prefix };

/// All answers are complete. The last event.
struct RequestFinished {
  RequestTimings timings = {};
  std::vector<MediumReuse> media = {};  // of the prompt's pictures and videos
};

enum class Timeout { none, queue, request };

/// The request ended otherwise. The last event.
struct RequestFailed {
  Fault fault = Fault::model;  // interrupted: it was cancelled, or took too long
  std::string message = {};
  Timeout timeout = Timeout::none;
  std::string cause = {};  // for a log: what happened, where that is not for clients
};

using Event = std::
    variant<Admitted, PromptProgress, AnswerToken, AnswerFinished, RequestFinished, RequestFailed>;

/// Called on the engine's thread; must not block, may not throw.
using EventSink = std::function<void(Event)>;

}  // namespace whimbrel
