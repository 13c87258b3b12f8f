#include "nn/attention.h"

namespace whimbrel::nn {

Attention::Attention(
    const WeightLoader& loader,
    const std::string& layer,
    int64_t hidden_size,
    const ops::HeadShape& shape,
    double eps,
    Bias qkv_bias
)
    : shape_(shape),
      input_layernorm_(loader.rms_norm(layer + ".input_layernorm", hidden_size, eps)) {
  const std::string path = layer + ".self_attn.";
  const int64_t q_width = int64_t{shape.heads} * shape.head_dim;
  const int64_t kv_width = int64_t{shape.kv_heads} * shape.head_dim;
  qkv_proj_ = {
      loader.linear(path + "q_proj", q_width, hidden_size, qkv_bias),
      loader.linear(path + "k_proj", kv_width, hidden_size, qkv_bias),
      loader.linear(path + "v_proj", kv_width, hidden_size, qkv_bias)
  };
  o_proj_ = loader.linear(path + "o_proj", hidden_size, q_width, Bias::absent);
}

mx::array Attention::operator()(
    const ops::Ops& ops, const mx::array& x, const ops::RopePlan& rope, LayerCache& cache
) const {
  const int rows = x.shape(0);
  const std::vector<mx::array> qkv = ops.norm_linears(x, input_layernorm_, qkv_proj_);
  reserve(cache, rows);
  ops::AttentionResult result =
      ops.attention({qkv[0], qkv[1], qkv[2]}, shape_, rope, cache.buffer, cache.length);
  cache.buffer = std::move(result.cache);
  cache.length += rows;
  return ops.linear_residual(result.output, *o_proj_, x);
}

}  // namespace whimbrel::nn
