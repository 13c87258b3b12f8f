#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "generate/sampling_overrides.h"
#include "weights/config.h"

namespace whimbrel {

/// The longest answer in tokens where nothing else is asked for.
inline constexpr int kDefaultMaxTokens = 1024;

/// How an answer is to be drawn, and how long it is at most, as typed; nothing: the model's own
/// value.
struct SamplingFlags : SamplingOverrides {
  std::optional<int> max_tokens = {};
  std::vector<std::string> stops = {};
};

/// Adds them to a command.
void add_sampling_options(CLI::App& command, SamplingFlags& flags);

/// What is asked, over the sampling that the checkpoint asks for. Throws Error(Fault::usage) that
/// names a value out of range and its range.
SamplingOptions sampling_options(const SamplingFlags& flags, const ModelConfig& config);

}  // namespace whimbrel
