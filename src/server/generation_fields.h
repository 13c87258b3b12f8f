#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/media_input.h"
#include "generate/sampling_overrides.h"
#include "server/fields.h"

namespace whimbrel::wire {

/// Our own object `whimbrel` of a request; a field of it that isn't listed is refused.
struct WhimbrelFields {
  bool details =
      false;  // the answer's object `whimbrel`: media, boxes, why a prefix was not reused
  MediaOptions media = {};  // min_pixels, max_pixels, image_tokens, fps, max_frames
};

/// What chat and text completions have in common.
struct GenerationFields {
  std::string model = {};              // empty: not named
  SamplingOverrides sampling = {};     // logit_bias is not checked against the vocabulary
  std::optional<int> max_tokens = {};  // nothing: what is left of the context
  int choices = 1;
  std::vector<std::string> stops = {};
  bool stream = false;
  bool include_usage = false;    // a last chunk of a stream with the usage
  bool return_progress = false;  // chunks of a stream with the prompt's progress
  WhimbrelFields whimbrel = {};
};

/// Ranges are those of generate/sampler.h. Also: `top_k` -1 and 0 keep all; `top_p` 0 keeps the
/// best token; `seed` is an integer of 64 bits, of which -1 asks for a new one; `max_tokens` -1 is
/// the rest of the context; `repeat_penalty` is another name of `repetition_penalty`. Throws
/// http::ApiException (400) that names the field.
GenerationFields read_generation_fields(Fields& fields, const RequestLimits& limits);

/// `top_p`, of which 0 keeps the best token.
std::optional<double> read_top_p(Fields& fields);

/// The list of a `stop`: a string, a list or null.
std::vector<std::string> read_stops(
    Fields& fields, std::string_view key, const RequestLimits& limits
);

/// Asks for `keys` so that they don't count as unread: fields that change no answer.
void accept_without_effect(Fields& fields, std::initializer_list<std::string_view> keys);

}  // namespace whimbrel::wire
