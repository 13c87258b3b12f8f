#include "nn/mlp.h"

namespace whimbrel::nn {

SwigluMlp::SwigluMlp(
    const WeightLoader& loader,
    const std::string& norm,
    const std::string& mlp,
    int64_t hidden_size,
    int64_t intermediate_size,
    double eps,
    Bias bias
)
    : norm_(loader.rms_norm(norm, hidden_size, eps)),
      gate_proj_(loader.linear(mlp + ".gate_proj", intermediate_size, hidden_size, bias)),
      up_proj_(loader.linear(mlp + ".up_proj", intermediate_size, hidden_size, bias)),
      down_proj_(loader.linear(mlp + ".down_proj", hidden_size, intermediate_size, bias)) {}

mx::array SwigluMlp::operator()(const ops::Ops& ops, const ops::Activations& x) const {
  return ops.swiglu_residual(x, norm_, *gate_proj_, *up_proj_, *down_proj_);
}

}  // namespace whimbrel::nn
