#include "server/answer_tally.h"

#include <algorithm>

namespace whimbrel::wire {

namespace {

double per(double amount, double divisor) {
  return divisor > 0 ? amount / divisor : 0.0;
}

}  // namespace

void AnswerTally::add(const Admitted& admitted) {
  prompt_tokens += admitted.prompt_tokens;
  cached_tokens += admitted.cached_tokens;
  if (not_cached.empty()) {
    not_cached = admitted.not_cached;
  }
}

void AnswerTally::add(const AnswerFinished& finished) {
  completion_tokens += finished.tokens;
  guessed_tokens += finished.guessed;
  guessed_right += finished.guessed_right;
  first_tokens += std::min(finished.tokens, 1);
}

void AnswerTally::add(const RequestFinished& finished) {
  timings.queue += finished.timings.queue;
  timings.tower += finished.timings.tower;
  timings.prefill += finished.timings.prefill;
  timings.decode += finished.timings.decode;
  media = finished.media;
}

Json usage_json(const AnswerTally& tally) {
  return {
      {"prompt_tokens", tally.prompt_tokens},
      {"completion_tokens", tally.completion_tokens},
      {"total_tokens", tally.prompt_tokens + tally.completion_tokens},
      {"prompt_tokens_details",
       {{"cached_tokens", tally.cached_tokens}, {"image_tokens", tally.image_tokens}}},
      {"completion_tokens_details", {{"reasoning_tokens", tally.reasoning_tokens}}}
  };
}

Json timings_json(const AnswerTally& tally) {
  constexpr double kSecond = 1000;
  const int computed = tally.prompt_tokens - tally.cached_tokens;
  const double prompt_ms = tally.timings.tower + tally.timings.prefill;
  const double decode_ms = tally.timings.decode;
  const int decoded = tally.completion_tokens - tally.first_tokens;
  return {
      {"prompt_n", computed},
      {"cache_n", tally.cached_tokens},
      {"prompt_ms", prompt_ms},
      {"prompt_per_token_ms", per(prompt_ms, computed)},
      {"prompt_per_second", per(computed * kSecond, prompt_ms)},
      {"predicted_n", tally.completion_tokens},
      {"predicted_ms", decode_ms},
      {"predicted_per_token_ms", per(decode_ms, decoded)},
      {"predicted_per_second", per(decoded * kSecond, decode_ms)},
      {"draft_n", tally.guessed_tokens},
      {"draft_n_accepted", tally.guessed_right},
      {"queue_ms", tally.timings.queue},
      {"tower_ms", tally.timings.tower}
  };
}

http::ApiError failure_of(const RequestFailed& failed) {
  if (failed.timeout != Timeout::none) {
    return {
        .kind = http::ErrorKind::unavailable,
        .message = failed.message + "; try again later",
        .code = failed.timeout == Timeout::queue ? "queue_timeout" : "request_timeout",
        .retry_after = 1,
    };
  }
  if (failed.fault == Fault::input || failed.fault == Fault::usage) {
    return {.kind = http::ErrorKind::bad_request, .message = failed.message};
  }
  if (failed.fault == Fault::model && failed.message.starts_with("[logits]")) {
    return {
        .kind = http::ErrorKind::internal,
        .message = failed.message,
        .code = "numerical_error",
    };
  }
  return http::error_of(Error(failed.fault, "request", "{}", failed.message));
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace whimbrel::wire
