#include "cli/sampling_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "generate/sampling_defaults.h"

namespace whimbrel {

namespace {

/// CLI11 would take -1 for 2^64 - 1.
std::string seed_complaint(const std::string& text) {
  uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, seed);
  return read.ec == std::errc{} && read.ptr == end
             ? ""
             : fmt::format("got {}, expected a whole number from 0 to {}", text, UINT64_MAX);
}

}  // namespace

void add_sampling_options(CLI::App& command, SamplingFlags& flags) {
  const std::string group = "Sampling (defaults: the model's generation_config.json)";
  const auto add = [&](const char* names, auto& value, const char* text) {
    return command.add_option(names, value, text)->group(group);
  };
  add("-n,--max-tokens", flags.max_tokens, "Longest answer in tokens (default: 1024)")
      ->check(CLI::Range(1, std::numeric_limits<int>::max(), "POSITIVE"));
  add("--temperature", flags.temperature, "0: always the most likely token");
  add("--top-k", flags.top_k, "Draw from the k most likely tokens; 0: all");
  add("--top-p", flags.top_p, "Draw from the most likely tokens up to this probability");
  add("--min-p", flags.min_p, "Leave out tokens below this share of the best one's probability");
  add("--repetition-penalty", flags.repetition_penalty, "Over 1: repeat less");
  add("--presence-penalty", flags.presence_penalty, "-2 to 2: for tokens in the answer");
  add("--frequency-penalty",
      flags.frequency_penalty,
      "-2 to 2: for each time a token stands there");
  add("--seed", flags.seed, "Same seed, same answer")->check(seed_complaint);
  add("--stop", flags.stops, "Text that ends the answer; repeat for several")
      ->allow_extra_args(false);
}

SamplingOptions sampling_options(const SamplingFlags& flags, const ModelConfig& config) {
  const SamplingOptions options = apply(flags, sampling_defaults(config));
  require_valid(options);
  return options;
}

}  // namespace whimbrel
