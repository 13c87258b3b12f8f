#include "nn/attention.h"

namespace whimbrel::nn {

Attention::Attention(
    const WeightLoader& loader,
    const std::string& path,
    int index,
    int64_t hidden_size,
    const AttentionConfig& config,
    double eps
)
    : index_(index),
      heads_(config.heads),
      input_layernorm_(loader.rms_norm(path + ".input_layernorm", hidden_size, eps)) {
  const std::string module = path + ".self_attn.";
  const int64_t q_width = int64_t{heads_.heads} * heads_.head_dim;
  const int64_t kv_width = int64_t{heads_.kv_heads} * heads_.head_dim;
  qkv_proj_ = {
      loader.linear(module + "q_proj", q_width, hidden_size, config.qkv_bias),
      loader.linear(module + "k_proj", kv_width, hidden_size, config.qkv_bias),
      loader.linear(module + "v_proj", kv_width, hidden_size, config.qkv_bias)
  };
  if (config.head_norms) {
    head_norms_ = {
        loader.rms_norm(module + "q_norm", heads_.head_dim, eps),
        loader.rms_norm(module + "k_norm", heads_.head_dim, eps)
    };
  }
  o_proj_ = loader.linear(module + "o_proj", hidden_size, q_width, Bias::absent);
}

mx::array Attention::operator()(
    const ops::Ops& ops, const mx::array& x, std::span<const SequenceRows> sequences
) const {
  const std::vector<mx::array> qkv = ops.norm_linears(x, input_layernorm_, qkv_proj_);
  std::vector<ops::AttentionRows> rows;
  for (const SequenceRows& sequence : sequences) {
    LayerCache& cache = sequence.cache.layer(index_);
    reserve(cache, sequence.count);
    rows.push_back({sequence.first, sequence.count, sequence.rope, cache.buffer, cache.length});
  }
  ops::AttentionResult result = ops.attention({qkv[0], qkv[1], qkv[2]}, heads_, head_norms_, rows);
  for (size_t i = 0; i < sequences.size(); ++i) {
    LayerCache& cache = sequences[i].cache.layer(index_);
    cache.buffer = std::move(result.caches[i]);
    cache.length += sequences[i].count;
  }
  return ops.linear_residual(result.output, *o_proj_, x);
}

}  // namespace whimbrel::nn
