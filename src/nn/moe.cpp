#include "nn/moe.h"

namespace whimbrel::nn {

MoeMlp::MoeMlp(
    const WeightLoader& loader,
    const std::string& norm,
    const std::string& mlp,
    int64_t hidden_size,
    const MoeConfig& config,
    double eps
)
    : norm_(loader.rms_norm(norm, hidden_size, eps)),
      experts_(loader.experts(
          mlp,
          {config.num_experts, hidden_size, config.moe_intermediate_size},
          config.num_experts_per_tok
      )) {
  experts_.renormalized = config.norm_topk_prob;
}

mx::array MoeMlp::operator()(const ops::Ops& ops, const ops::Activations& x) const {
  return ops.experts_residual(x.rows, norm_, experts_);
}

mx::array MoeMlp::router_logits(const ops::Ops& ops, const mx::array& x) const {
  return ops.norm_linears(ops::decode_rows(x), norm_, {&experts_.router, 1})[0];
}

}  // namespace whimbrel::nn
