#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/prompt.h"

namespace whimbrel {

/// All operations of one name in a step.
struct OpCount {
  int count = 0;
  uint64_t bytes = 0;  // of their outputs, whether or not these have a buffer of their own

  bool operator==(const OpCount&) const = default;
};

/// Bytes that a step reads or writes, counted on its graph before it runs.
struct StepBytes {
  /// Arrays from before the step that every step reads: each once, where it is only gathered from
  /// (an embedding, experts) the rows that are taken.
  uint64_t weights = 0;
  /// Rows of the KV cache that attention reads, the new one included.
  uint64_t cache = 0;
  /// Outputs of the step's operations, without views and without writes into the cache.
  uint64_t activations = 0;
  /// Arrays made for this step on the host: the token, scalars.
  uint64_t inputs = 0;
};

/// One decode step behind `context` tokens.
struct StepProfile {
  int context = 0;
  int nodes = 0;         // operations of the graph
  int own_launches = 0;  // those that are kernels of this project
  StepBytes bytes = {};
  std::map<std::string, OpCount> ops = {};
  uint64_t active_memory = 0;  // bytes MLX holds before the step: weights, caches
  uint64_t step_memory = 0;    // most that the step takes on top of it
  double host_ms = 0;          // building the graph, median
  double device_ms = 0;        // running it, median
};

struct ProfileOptions {
  std::vector<int> contexts = {64, 2048};
  int steps = 16;  // timed at each context
  int prefill_chunk = 512;
};

/// The prompt with `filler` behind it, over and over, `tokens` in all. Throws Error(Fault::input)
/// with both numbers where the prompt alone is longer.
Prompt fill_prompt(const Prompt& prompt, std::span<const int32_t> filler, int tokens);

/// Profiles decode steps behind each context: the prompt, filled up. Room in the cache is made
/// first, so that a step in which it grows (one in KVCache::kStep) is not what is seen. Timed steps
/// of the contexts take turns. Throws as fill_prompt.
std::vector<StepProfile> profile_steps(
    const Model& model,
    const Prompt& prompt,
    std::span<const int32_t> filler,
    const ProfileOptions& options
);

}  // namespace whimbrel
