#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "generate/generate.h"
#include "models/family.h"
#include "models/prompt.h"
#include "ops/ops.h"
#include "weights/checkpoint.h"

namespace whimbrel {

/// Bytes that a request needs, known before any weight is read.
struct MemoryEstimate {
  uint64_t weights = 0;      // in the form that the operations compute with
  uint64_t kv_cache = 0;     // of prompt and answer
  uint64_t activations = 0;  // of the largest prefill chunk
  uint64_t tower = 0;        // of the largest picture or video, before there is a cache

  uint64_t total() const { return weights + std::max(tower, kv_cache + activations); }
};

/// Of `options` the length of the answer, the prefill chunk and the form of the cache count.
MemoryEstimate estimate_memory(
    const ModelShape& shape,
    const CheckpointSummary& checkpoint,
    const ops::Ops& ops,
    const Prompt& prompt,
    const GenerateOptions& options
);

/// Throws Error(Fault::memory) with the figures where the estimate is more than what is available.
void require_memory(const MemoryEstimate& estimate);

/// "1.5 GiB", "320 MiB".
std::string size_text(uint64_t bytes);

}  // namespace whimbrel
