#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generate/sampler.h"
#include "weights/config.h"

namespace whimbrel {

/// The longest answer in tokens where nothing else is asked for.
inline constexpr int kDefaultMaxTokens = 1024;

/// How an answer is to be drawn, as typed; nothing: the model's own value.
struct SamplingFlags {
  std::optional<int> max_tokens = {};
  std::optional<double> temperature = {};
  std::optional<int> top_k = {};
  std::optional<double> top_p = {};
  std::optional<double> min_p = {};
  std::optional<double> repetition_penalty = {};
  std::optional<double> presence_penalty = {};
  std::optional<double> frequency_penalty = {};
  std::optional<uint64_t> seed = {};
  std::vector<std::string> stops = {};
};

/// Adds them to a command.
void add_sampling_options(CLI::App& command, SamplingFlags& flags);

/// What is asked, over the sampling that the checkpoint asks for. Throws Error(Fault::usage) that
/// names a value out of range and its range.
SamplingOptions sampling_options(const SamplingFlags& flags, const ModelConfig& config);

}  // namespace whimbrel
