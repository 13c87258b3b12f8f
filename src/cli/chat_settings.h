#pragma once

#include <string>
#include <string_view>

#include "cli/sampling_flags.h"
#include "weights/config.h"

namespace whimbrel {

/// `flags` with one of them set by its name (temperature, top_p, …, max_tokens) to a number, or for
/// `default` to what the model's files ask for. Throws Error(Fault::usage) on another name, on what
/// is no such number, and on one out of range.
SamplingFlags with_setting(
    SamplingFlags flags, std::string_view name, std::string_view value, const ModelConfig& config
);

/// All settings by name, a line each, as they are in effect.
std::string settings_text(const SamplingFlags& flags, const ModelConfig& config);

}  // namespace whimbrel
