#include "engine/memory_estimate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/memory.h"
#include "nn/kv_cache.h"

namespace whimbrel {

namespace {

/// A layer's temporaries: a few copies of the residual stream, gate and up, and the scores.
uint64_t layer_bytes(
    uint64_t rows, uint64_t columns, uint64_t hidden, uint64_t intermediate, uint64_t heads
) {
  constexpr uint64_t kStreams = 8;
  constexpr uint64_t kScores = 2;  // before and after softmax
  return sizeof(float) *
         (rows * (kStreams * hidden + 3 * intermediate) + kScores * heads * rows * columns);
}

uint64_t decoder_bytes(
    const ModelShape& shape, const Prompt& prompt, const GenerateOptions& options
) {
  const int rows = std::min(prompt.tokens(), options.prefill_chunk);
  return layer_bytes(
      static_cast<uint64_t>(rows),
      static_cast<uint64_t>(prompt.tokens()),
      static_cast<uint64_t>(shape.hidden_size),
      static_cast<uint64_t>(shape.intermediate_size),
      static_cast<uint64_t>(shape.heads.heads)
  );
}

/// The tower sees one picture or video at a time; its widest blocks attend over a whole frame.
uint64_t tower_bytes(const ModelShape& shape, const Prompt& prompt) {
  if (!shape.vision) {
    return 0;
  }
  uint64_t largest = 0;
  for (const MediaSpan& span : prompt.media) {
    const auto patches = static_cast<uint64_t>(span.patches.count);
    const uint64_t in_frame = patches / static_cast<uint64_t>(span.patches.grid_thw[0]);
    const auto hidden = static_cast<uint64_t>(shape.vision->hidden_size);
    const uint64_t block = layer_bytes(
        patches,
        in_frame,
        hidden,
        static_cast<uint64_t>(shape.vision->intermediate_size),
        static_cast<uint64_t>(shape.vision->heads)
    );
    largest = std::max(largest, block);
  }
  return largest;
}

uint64_t cache_bytes(
    const ModelShape& shape, mx::Dtype dtype, const Prompt& prompt, const GenerateOptions& options
) {
  const int tokens = prompt.tokens() + options.max_tokens;
  const int limit = options.kv_limit.max_rows;
  const int rows = limit == 0 ? tokens : std::min(tokens, limit);
  const ops::KVFormat format = ops::kv_format(options.kv_bits, dtype, shape.heads.head_dim);
  return nn::kv_cache_bytes(shape.layers, shape.heads, format, rows);
}

uint64_t weight_bytes(const CheckpointSummary& checkpoint, mx::Dtype dtype) {
  return dtype == mx::float32 ? checkpoint.parameters * sizeof(float) : checkpoint.bytes;
}

}  // namespace

MemoryEstimate estimate_memory(
    const Frontend& frontend,
    const CheckpointSummary& checkpoint,
    mx::Dtype dtype,
    const Prompt& prompt,
    const GenerateOptions& options
) {
  const ModelShape& shape = frontend.shape;
  return {
      .weights = weight_bytes(checkpoint, dtype),
      .kv_cache = cache_bytes(shape, dtype, prompt, options),
      .activations = std::max(decoder_bytes(shape, prompt, options), tower_bytes(shape, prompt)),
  };
}

void require_memory(const MemoryEstimate& estimate) {
  const std::optional<uint64_t> available = available_memory();
  if (available && estimate.total() > *available) {
    throw Error(
        Fault::memory,
        "memory",
        "got {} available, expected {} (weights {}, cache {}, activations {}); use a smaller "
        "model, "
        "picture or answer, or try anyway with --force",
        size_text(*available),
        size_text(estimate.total()),
        size_text(estimate.weights),
        size_text(estimate.kv_cache),
        size_text(estimate.activations)
    );
  }
}

std::string size_text(uint64_t bytes) {
  constexpr double kMiB = 1024.0 * 1024.0;
  const double mib = static_cast<double>(bytes) / kMiB;
  return mib < 1024 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.1f} GiB", mib / 1024);
}

}  // namespace whimbrel
