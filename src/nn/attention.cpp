#include "nn/attention.h"

namespace whimbrel::nn {

namespace {

ops::AttentionWeights load_weights(
    const WeightLoader& loader,
    const std::string& path,
    int64_t hidden_size,
    const AttentionConfig& config,
    double eps
) {
  const ops::HeadShape& heads = config.heads;
  const std::string module = path + ".self_attn.";
  const int64_t q_width = int64_t{heads.heads} * heads.head_dim;
  const int64_t kv_width = int64_t{heads.kv_heads} * heads.head_dim;
  ops::AttentionWeights weights{
      loader.rms_norm(path + ".input_layernorm", hidden_size, eps),
      {loader.linear(module + "q_proj", q_width, hidden_size, config.qkv_bias),
       loader.linear(module + "k_proj", kv_width, hidden_size, config.qkv_bias),
       loader.linear(module + "v_proj", kv_width, hidden_size, config.qkv_bias)},
      std::nullopt,
      nullptr
  };
  if (config.head_norms) {
    weights.head_norms = {
        loader.rms_norm(module + "q_norm", heads.head_dim, eps),
        loader.rms_norm(module + "k_norm", heads.head_dim, eps)
    };
  }
  weights.o_proj = loader.linear(module + "o_proj", hidden_size, q_width, Bias::absent);
  return weights;
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
      weights_(load_weights(loader, path, hidden_size, config, eps)) {}

mx::array Attention::operator()(
    const ops::Ops& ops, const mx::array& x, std::span<const SequenceRows> sequences
) const {
  std::vector<ops::AttentionRows> rows;
  for (const SequenceRows& sequence : sequences) {
    LayerCache& cache = sequence.cache.layer(index_);
    reserve(cache, sequence.count);
    rows.push_back(
        {sequence.first,
         sequence.count,
         sequence.rope,
         cache.buffer,
         cache.length,
         sequence.prefill}
    );
  }
  ops::AttentionResult result = ops.attention_residual(x, weights_, heads_, rows);
  for (size_t i = 0; i < sequences.size(); ++i) {
    LayerCache& cache = sequences[i].cache.layer(index_);
    cache.buffer = std::move(result.caches[i]);
    cache.length += sequences[i].count;
  }
  return result.output;
}

}  // namespace whimbrel::nn
