#pragma once

#include <string>
#include <vector>

#include "nn/kv_cache.h"
#include "nn/loader.h"
#include "ops/ops.h"

namespace whimbrel::nn {

/// Self attention of a Qwen decoder layer: norm, q, k, v, rope, cache write, grouped attention,
/// output projection and residual. The one body for all families.
class Attention {
 public:
  /// `layer` is the layer's path (`model.layers.0`). `qkv_bias` is present in Qwen2 and Qwen2.5.
  Attention(
      const WeightLoader& loader,
      const std::string& layer,
      int64_t hidden_size,
      const ops::HeadShape& shape,
      double eps,
      Bias qkv_bias
  );

  /// x [rows, hidden_size] -> the residual stream behind attention, same shape and dtype. Appends
  /// the rows to `cache`.
  mx::array operator()(
      const ops::Ops& ops, const mx::array& x, const ops::RopePlan& rope, LayerCache& cache
  ) const;

 private:
  ops::HeadShape shape_;
  ops::RmsNorm input_layernorm_;
  std::vector<ops::PackedMatrixPtr> qkv_proj_;  // q, k, v
  ops::PackedMatrixPtr o_proj_;
};

}  // namespace whimbrel::nn
