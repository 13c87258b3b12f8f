#include "engine/bench_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace whimbrel {

namespace {

uint64_t expert_bytes(const Checkpoint& checkpoint, const nn::DecoderConfig& config) {
  uint64_t bytes = 0;
  for (int layer = 0; config.moe && layer < config.num_hidden_layers; ++layer) {
    bytes += checkpoint.totals_under(fmt::format("model.layers.{}.mlp.experts.", layer)).bytes;
  }
  return bytes;
}

double feed_forward_width(const nn::DecoderConfig& config, int layer) {
  if (config.moe && std::ranges::count(config.moe->dense_layers, layer) == 0) {
    return static_cast<double>(config.moe->num_experts_per_tok) * config.moe->moe_intermediate_size;
  }
  return config.intermediate_size;
}

double layer_macs(const nn::DecoderConfig& config) {
  const ops::HeadShape& heads = config.attention.heads;
  const double hidden = config.hidden_size;
  const double attention = 2.0 * (heads.heads + heads.kv_heads) * heads.head_dim * hidden;
  double macs = 0;
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    macs += attention + 3 * feed_forward_width(config, layer) * hidden;
  }
  return macs;
}

}  // namespace

double tower_patch_macs(const Checkpoint& checkpoint, int merged) {
  const auto parameters = [&checkpoint](std::string_view prefix) {
    return static_cast<double>(checkpoint.totals_under(prefix).parameters);
  };
  const double mergers = parameters("visual.merger.") + parameters("visual.deepstack_merger_list.");
  const double each_patch = parameters("visual.") - parameters("visual.pos_embed.") - mergers;
  return each_patch + mergers / merged;
}

ModelWork model_work(
    const Checkpoint& checkpoint,
    const nn::DecoderConfig& config,
    const ops::KVFormat& kv,
    int merged
) {
  const uint64_t embedding = checkpoint.totals_under("model.embed_tokens.").bytes;
  const uint64_t head = checkpoint.totals_under("lm_head.").bytes;
  const uint64_t experts = expert_bytes(checkpoint, config);
  const uint64_t all = checkpoint.total_bytes() - checkpoint.totals_under("visual.").bytes;
  const ops::HeadShape& heads = config.attention.heads;
  const int step = nn::KVCache::kStep;
  return {
      .shared_bytes = all - experts - (head == 0 ? 0 : embedding),
      .expert_bytes = experts,
      .experts_chosen = config.moe ? static_cast<double>(config.moe->num_experts_per_tok) /
                                         config.moe->num_experts
                                   : 0,
      .row_bytes = embedding / static_cast<uint64_t>(config.vocab_size),
      .kv_bytes = nn::kv_cache_bytes(config.num_hidden_layers, heads, kv, step) /
                  static_cast<uint64_t>(step),
      .layer_macs = layer_macs(config),
      .head_macs = static_cast<double>(config.vocab_size) * config.hidden_size,
      .attention_macs = 2.0 * config.num_hidden_layers * heads.heads * heads.head_dim,
      .patch_macs = tower_patch_macs(checkpoint, merged),
  };
}

double step_bytes(const ModelWork& work, int rows, double context) {
  const double chosen = 1 - std::pow(1 - work.experts_chosen, rows);
  return static_cast<double>(work.shared_bytes) + static_cast<double>(work.expert_bytes) * chosen +
         rows *
             (static_cast<double>(work.row_bytes) + static_cast<double>(work.kv_bytes) * context);
}

double prefill_macs(const ModelWork& work, int tokens, int depth) {
  const double seen = depth + (tokens + 1) / 2.0;  // by a token, on average
  return tokens * (work.layer_macs + work.attention_macs * seen) + work.head_macs;
}

}  // namespace whimbrel
