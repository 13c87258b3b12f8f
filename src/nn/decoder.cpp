#include "nn/decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "nn/residual.h"

namespace whimbrel::nn {

Decoder::Decoder(const WeightLoader& loader, const DecoderConfig& config, bool tied)
    : ops_(loader.ops()),
      config_(config),
      rope_(config.rope_theta, config.attention.heads.head_dim, config.rope_axes),
      embed_tokens_(loader.embedding("model.embed_tokens", config.vocab_size, config.hidden_size)),
      norm_(loader.rms_norm("model.norm", config.hidden_size, config.rms_norm_eps)),
      lm_head_(
          tied ? embed_tokens_
               : loader.linear("lm_head", config.vocab_size, config.hidden_size, Bias::absent)
      ) {
  for (int i = 0; i < config.num_hidden_layers; ++i) {
    layers_.push_back(load_layer(loader, i));
  }
}

Decoder::Layer Decoder::load_layer(const WeightLoader& loader, int index) const {
  const std::string path = fmt::format("model.layers.{}", index);
  const std::string norm = path + ".post_attention_layernorm";
  const std::string mlp = path + ".mlp";
  const int64_t hidden_size = config_.hidden_size;
  const double eps = config_.rms_norm_eps;
  Attention attention(loader, path, index, hidden_size, config_.attention, eps);
  if (config_.moe && std::ranges::count(config_.moe->dense_layers, index) == 0) {
    return {std::move(attention), MoeMlp(loader, norm, mlp, hidden_size, *config_.moe, eps)};
  }
  return {
      std::move(attention),
      SwigluMlp(loader, norm, mlp, hidden_size, config_.intermediate_size, eps, Bias::absent)
  };
}

std::vector<SequenceRows> Decoder::plan(
    std::span<const Chunk> chunks, std::span<KVCache* const> caches
) const {
  std::vector<SequenceRows> sequences;
  int first = 0;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const Chunk& chunk = chunks[i];
    sequences.push_back(
        {first, chunk.rows(), chunk.prefill, plan_rope(ops_, rope_, chunk), *caches[i]}
    );
    first += chunk.rows();
  }
  return sequences;
}

mx::array Decoder::forward(
    std::span<const Chunk> chunks,
    std::span<KVCache* const> caches,
    const StageListener& on_stage,
    const LayerForcing& forced
) const {
  const std::vector<SequenceRows> sequences = plan(chunks, caches);
  const int prefill = prefill_rows(chunks);
  const StageReporter report(on_stage);
  mx::array x = embed_chunks(ops_, *embed_tokens_, chunks);
  report("model.embed_tokens", x);
  for (int i = 0; i < config_.num_hidden_layers; ++i) {
    const Layer& layer = layers_[static_cast<size_t>(i)];
    x = layer.self_attn(ops_, x, sequences);
    if (const auto* moe = std::get_if<MoeMlp>(&layer.mlp); moe != nullptr && report.is_heard()) {
      report("model.layers.{}.mlp.gate", i, moe->router_logits(ops_, x));
    }
    x = std::visit([&](const auto& mlp) { return mlp(ops_, {x, prefill}); }, layer.mlp);
    x = add_deepstack(x, chunks, i);
    assert_residual_dtype(x, ops_.dtype(), i);
    report("model.layers.{}", i, x);
    x = forced ? forced(i) : x;
  }
  return x;
}

mx::array Decoder::logits(const mx::array& hidden) const {
  return ops_.norm_linears(ops::decode_rows(hidden), norm_, {&lm_head_, 1})[0];
}

}  // namespace whimbrel::nn
