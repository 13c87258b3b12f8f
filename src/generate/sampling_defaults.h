#pragma once

#include "generate/sampler.h"
#include "weights/config.h"

namespace whimbrel {

/// Sampling as generation_config.json asks for it: without `do_sample: true` the temperature is 0,
/// as in transformers. Throws Error(Fault::model) naming a key whose value can't be used.
SamplingOptions sampling_defaults(const ModelConfig& config);

}  // namespace whimbrel
