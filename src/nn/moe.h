#pragma once

#include <string>
#include <vector>

#include "nn/loader.h"
#include "ops/ops.h"

namespace whimbrel::nn {

/// Sizes of a mixture-of-experts layer, and how tokens are sent to experts.
struct MoeConfig {
  int num_experts;
  int num_experts_per_tok;
  int moe_intermediate_size;           // of one expert
  bool norm_topk_prob;                 // the chosen experts' weights are scaled to the sum 1
  std::vector<int> dense_layers = {};  // layers that have no experts
};

/// Norm, routed experts and residual of a decoder layer (HF Qwen3MoeSparseMoeBlock).
class MoeMlp {
 public:
  /// `norm` is the path of the norm, `mlp` that of gate (the router) and experts.
  MoeMlp(
      const WeightLoader& loader,
      const std::string& norm,
      const std::string& mlp,
      int64_t hidden_size,
      const MoeConfig& config,
      double eps
  );

  /// x [rows, hidden_size] -> the residual stream behind the layer, same shape and dtype.
  mx::array operator()(const ops::Ops& ops, const ops::Activations& x) const;

  /// The router's logits of the same rows: [rows, num_experts]. Experts are chosen by these.
  mx::array router_logits(const ops::Ops& ops, const mx::array& x) const;

 private:
  ops::RmsNorm norm_;
  ops::Experts experts_;
};

}  // namespace whimbrel::nn
