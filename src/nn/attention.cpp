#include "nn/attention.h"

#include <mlx/mlx.h>

namespace whimbrel::nn {

namespace {

mx::array rows_of(const mx::array& x, const SequenceRows& sequence) {
  const mx::Shape start = {sequence.first, 0};
  const mx::Shape stop = {sequence.first + sequence.count, x.shape(1)};
  return mx::slice(x, start, stop);
}

}  // namespace

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
  if (sequences.size() == 1) {
    const mx::array output = attend(ops, {qkv[0], qkv[1], qkv[2]}, sequences.front());
    return ops.linear_residual(output, *o_proj_, x);
  }
  std::vector<mx::array> outputs;
  for (const SequenceRows& sequence : sequences) {
    outputs.push_back(attend(
        ops,
        {rows_of(qkv[0], sequence), rows_of(qkv[1], sequence), rows_of(qkv[2], sequence)},
        sequence
    ));
  }
  return ops.linear_residual(mx::concatenate(outputs, 0), *o_proj_, x);
}

mx::array Attention::attend(
    const ops::Ops& ops, const ops::Qkv& qkv, const SequenceRows& sequence
) const {
  LayerCache& cache = sequence.cache.layer(index_);
  reserve(cache, sequence.count);
  ops::AttentionResult result =
      ops.attention(qkv, heads_, head_norms_, sequence.rope, cache.buffer, cache.length);
  cache.buffer = std::move(result.cache);
  cache.length += sequence.count;
  return result.output;
}

}  // namespace whimbrel::nn
