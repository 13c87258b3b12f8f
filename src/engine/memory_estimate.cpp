#include "engine/memory_estimate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/memory.h"
#include "nn/kv_cache.h"

namespace whimbrel {

namespace {

/// One chunk of a prompt, `end` tokens with those before it.
uint64_t chunk_bytes(const ops::Ops& ops, const ModelShape& shape, int rows, int end) {
  const auto size = [](int value) { return static_cast<uint64_t>(value); };
  const ops::HeadShape& heads = shape.heads;
  const uint64_t layer = ops.layer_bytes({
      .rows = size(rows),
      .columns = size(end),
      .heads = size(heads.heads),
      .hidden = size(shape.hidden_size),
      .attention = size(heads.heads) * size(heads.head_dim),
      .feed_forward = size(shape.active_intermediate_size),
      .input = 0,
  });
  // A layer's keys and values stand there twice while its cache grows.
  return layer + nn::kv_cache_bytes(1, heads, {.dtype = ops.kv_dtype()}, end);
}

uint64_t decoder_bytes(
    const ops::Ops& ops,
    const ModelShape& shape,
    const Prompt& prompt,
    const GenerateOptions& options
) {
  const int tokens = prompt.tokens();
  const int limit = options.kv_limit.max_rows;
  const int chunk = std::min(tokens, options.prefill_chunk);
  const auto visible = [limit](int end) { return limit == 0 ? end : std::min(end, limit); };
  const int whole_chunks = chunk == 0 ? 0 : tokens / chunk * chunk;
  return std::max(
      chunk_bytes(ops, shape, chunk, visible(whole_chunks)),
      chunk_bytes(ops, shape, tokens - whole_chunks, visible(tokens))
  );
}

/// The tower sees one picture or video at a time; its widest blocks attend over a whole frame.
uint64_t tower_bytes(const ops::Ops& ops, const ModelShape& shape, const Prompt& prompt) {
  if (!shape.vision) {
    return 0;
  }
  uint64_t largest = 0;
  for (const MediaSpan& span : prompt.media) {
    const auto patches = static_cast<uint64_t>(span.patches.count);
    const auto hidden = static_cast<uint64_t>(shape.vision->hidden_size);
    const uint64_t block = ops.layer_bytes({
        .rows = patches,
        .columns = patches / static_cast<uint64_t>(span.patches.grid_thw[0]),
        .heads = static_cast<uint64_t>(shape.vision->heads),
        .hidden = hidden,
        .attention = hidden,
        .feed_forward = static_cast<uint64_t>(shape.vision->intermediate_size),
        .input = static_cast<uint64_t>(span.patches.width),
    });
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

}  // namespace

MemoryEstimate estimate_memory(
    const ModelShape& shape,
    const CheckpointSummary& checkpoint,
    const ops::Ops& ops,
    const Prompt& prompt,
    const GenerateOptions& options
) {
  return {
      .weights = ops.weight_bytes({checkpoint.bytes, checkpoint.parameters}),
      .kv_cache = cache_bytes(shape, ops.kv_dtype(), prompt, options),
      .activations = decoder_bytes(ops, shape, prompt, options),
      .tower = tower_bytes(ops, shape, prompt),
  };
}

void require_memory(const MemoryEstimate& estimate) {
  const std::optional<uint64_t> available = available_memory();
  if (available && estimate.total() > *available) {
    throw Error(
        Fault::memory,
        "memory",
        "got {} available, expected {} (weights {}, cache {}, activations {}, tower {}); "
        "use a smaller model, picture or answer, or try anyway with --force",
        size_text(*available),
        size_text(estimate.total()),
        size_text(estimate.weights),
        size_text(estimate.kv_cache),
        size_text(estimate.activations),
        size_text(estimate.tower)
    );
  }
}

std::string size_text(uint64_t bytes) {
  constexpr double kMiB = 1024.0 * 1024.0;
  const double mib = static_cast<double>(bytes) / kMiB;
  return mib < 1024 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.1f} GiB", mib / 1024);
}

}  // namespace whimbrel
