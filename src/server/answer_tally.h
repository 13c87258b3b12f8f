#pragma once

#include <string>

#include "base/json.h"
#include "engine/request.h"
#include "server/api_error.h"

namespace whimbrel::wire {

/// What a request took: added up over its events, and over the requests of a list of prompts.
struct AnswerTally {
  int prompt_tokens = 0;
  int cached_tokens = 0;
  int image_tokens = 0;  // of the prompt; the front end knows
  int completion_tokens = 0;
  int reasoning_tokens = 0;
  int guessed_tokens = 0;       // before they were drawn
  int guessed_right = 0;        // of these
  std::string not_cached = {};  // why no more of the prompt was reused
  int first_tokens = 0;         // of answers with a token: what `decode` doesn't hold
  RequestTimings timings = {};
  std::vector<MediumReuse> media = {};  // of the request that ended last

  void add(const Admitted& admitted);
  void add(const AnswerFinished& finished);
  void add(const RequestFinished& finished);
};

/// OpenAI's `usage` of chat and text completions.
Json usage_json(const AnswerTally& tally);

/// llama-server's `timings`, with `queue_ms` and `tower_ms` beside it. `prompt_ms` is tower and
/// prefill; `draft_n` are tokens that were guessed; `predicted_ms` is what lies behind the first
/// token, and rates are those of the tokens in it. A rate of no time is 0.
Json timings_json(const AnswerTally& tally);

/// What a client is told of a request that failed.
http::ApiError failure_of(const RequestFailed& failed);

/// Text of JSON. Bytes that are no UTF-8 become U+FFFD.
std::string dump(const Json& json);

}  // namespace whimbrel::wire
