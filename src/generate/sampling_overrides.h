#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "generate/sampler.h"

namespace whimbrel {

/// What somebody asks of sampling, over a checkpoint's own; nothing: that.
struct SamplingOverrides {
  std::optional<double> temperature = {};
  std::optional<int> top_k = {};
  std::optional<double> top_p = {};
  std::optional<double> min_p = {};
  std::optional<double> repetition_penalty = {};
  std::optional<double> presence_penalty = {};
  std::optional<double> frequency_penalty = {};
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // empty: nothing
  std::optional<uint64_t> seed = {};
};

/// `defaults` with what is asked for. Nothing is checked.
SamplingOptions apply(const SamplingOverrides& overrides, const SamplingOptions& defaults);

}  // namespace whimbrel
