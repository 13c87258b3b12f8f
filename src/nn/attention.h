#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nn/kv_cache.h"
#include "nn/loader.h"
#include "ops/ops.h"

namespace whimbrel::nn {

/// The rows of one sequence in a forward, and what its attention needs.
struct SequenceRows {
  int first;  // row of the forward
  int count;
  bool prefill;  // of a prompt (ops::Activations)
  ops::RopePlan rope;
  KVCache& cache;
};

/// What a family's attention has beside its four projections.
struct AttentionConfig {
  ops::HeadShape heads;
  Bias qkv_bias = Bias::absent;  // present in Qwen2 and Qwen2.5
  bool head_norms = false;       // q_norm and k_norm, in Qwen3
};

/// Self attention of a decoder layer: norm, q, k, v, rope, cache write, grouped attention, output
/// projection and residual. The one body for all families.
class Attention {
 public:
  /// Layer `index` under `path` (`model.layers.0`).
  Attention(
      const WeightLoader& loader,
      const std::string& path,
      int index,
      int64_t hidden_size,
      const AttentionConfig& config,
      double eps
  );

  /// x [rows, hidden_size], the rows of all sequences one behind the other -> the residual stream
  /// behind attention, same shape and dtype. Appends each sequence's rows to its cache.
  mx::array operator()(
      const ops::Ops& ops, const mx::array& x, std::span<const SequenceRows> sequences
  ) const;

 private:
  int index_;
  ops::HeadShape heads_;
  ops::AttentionWeights weights_;
};

}  // namespace whimbrel::nn
