#include "generate/sampling_overrides.h"

namespace whimbrel {

SamplingOptions apply(const SamplingOverrides& overrides, const SamplingOptions& defaults) {
  SamplingOptions options = defaults;
  const auto set = [](auto& value, const auto& asked) { value = asked.value_or(value); };
  set(options.temperature, overrides.temperature);
  set(options.top_k, overrides.top_k);
  set(options.top_p, overrides.top_p);
  set(options.min_p, overrides.min_p);
  set(options.repetition_penalty, overrides.repetition_penalty);
  set(options.presence_penalty, overrides.presence_penalty);
  set(options.frequency_penalty, overrides.frequency_penalty);
  if (!overrides.logit_bias.empty()) {
    options.logit_bias = overrides.logit_bias;
  }
  if (overrides.seed) {
    options.seed = overrides.seed;
  }
  return options;
}

}  // namespace whimbrel
