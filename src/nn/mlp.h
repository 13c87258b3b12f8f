#pragma once

#include <string>

#include "nn/loader.h"
#include "ops/ops.h"

namespace whimbrel::nn {

/// Norm, gated SiLU feed-forward and residual: of a decoder layer, and of Qwen2.5-VL's tower.
class SwigluMlp {
 public:
  /// `norm` is the path of the norm, `mlp` that of gate_proj, up_proj and down_proj.
  SwigluMlp(
      const WeightLoader& loader,
      const std::string& norm,
      const std::string& mlp,
      int64_t hidden_size,
      int64_t intermediate_size,
      double eps,
      Bias bias
  );

  /// x [rows, hidden_size] -> the residual stream behind the layer, same shape and dtype.
  mx::array operator()(const ops::Ops& ops, const ops::Activations& x) const;

 private:
  ops::RmsNorm norm_;
  ops::PackedMatrixPtr gate_proj_;
  ops::PackedMatrixPtr up_proj_;
  ops::PackedMatrixPtr down_proj_;
};

}  // namespace whimbrel::nn
