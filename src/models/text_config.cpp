#include "models/text_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "models/config_keys.h"

namespace whimbrel {

namespace {

constexpr int kMaxExperts = 65536;

void refuse_biases(const Json& text, const JsonSource& source) {
  for (const std::string_view key : {"attention_bias", "mlp_bias"}) {
    if (get_bool_or(text, key, false, source)) {
      throw Error(
          Fault::model,
          source.where,
          "got \"{}\": true, expected false; biases of these layers are not supported",
          key
      );
    }
  }
}

RopeConfig rope_of(const ModelConfig& config) {
  const JsonSource source = config.source();
  return read_rope(config.text, read_attention_shape(config.text, source).head_dim, source);
}

std::vector<int> layers_without_experts(const ModelConfig& config) {
  const JsonSource source = config.source();
  const std::vector<int64_t> stated = get_ints(config.text, "mlp_only_layers", source);
  const int64_t step = get_int_or(config.text, "decoder_sparse_step", 1, source);
  const int64_t layers = get_depth(config.text, "num_hidden_layers", source);
  std::vector<int> dense;
  for (int64_t layer = 0; layer < layers; ++layer) {
    if ((layer + 1) % step != 0 || std::ranges::count(stated, layer) != 0) {
      dense.push_back(static_cast<int>(layer));
    }
  }
  return dense;
}

}  // namespace

nn::DecoderConfig read_text_config(const ModelConfig& config) {
  const JsonSource source = config.source();
  const Json& text = config.text;
  require_activation(text, "silu", source);
  refuse_biases(text, source);
  const AttentionShape shape = read_attention_shape(text, source);
  nn::DecoderConfig parsed{
      .hidden_size = get_size(text, "hidden_size", source),
      .intermediate_size = get_size(text, "intermediate_size", source),
      .num_hidden_layers = get_depth(text, "num_hidden_layers", source),
      .vocab_size = get_size(text, "vocab_size", source),
      .max_position_embeddings = get_size(text, "max_position_embeddings", source),
      .rms_norm_eps = get_number(text, "rms_norm_eps", source),
      .attention =
          {.heads =
               {static_cast<int>(shape.heads),
                static_cast<int>(shape.kv_heads),
                static_cast<int>(shape.head_dim)}},
      .rope_theta = rope_of(config).theta,
      .rope_axes = std::vector<int>(static_cast<size_t>(shape.head_dim / 2), 0),
      .moe = std::nullopt,
  };
  require_positive(parsed.rms_norm_eps, "rms_norm_eps", source);
  return parsed;
}

std::vector<int> read_mrope_section(const ModelConfig& config, const std::vector<int>& fallback) {
  std::vector<int> section = rope_of(config).mrope_section;
  if (!section.empty()) {
    return section;
  }
  const int64_t head_dim = read_attention_shape(config.text, config.source()).head_dim;
  if (std::accumulate(fallback.begin(), fallback.end(), 0) != head_dim / 2) {
    throw Error(
        Fault::model,
        config.source().where,
        "got no mrope_section, expected three numbers with the sum {} (half of head_dim {})",
        head_dim / 2,
        head_dim
    );
  }
  return fallback;
}

void require_interleaved(const ModelConfig& config, bool interleaved) {
  const bool stated = rope_of(config).mrope_interleaved.value_or(interleaved);
  if (stated != interleaved) {
    throw Error(
        Fault::model,
        config.source().where,
        "got \"mrope_interleaved\": {}, expected {} for this architecture",
        stated,
        interleaved
    );
  }
}

nn::MoeConfig read_moe_config(const ModelConfig& config) {
  const JsonSource source = config.source();
  const Json& text = config.text;
  const int64_t experts = get_int(text, "num_experts", source, 1, kMaxExperts);
  return {
      .num_experts = static_cast<int>(experts),
      .num_experts_per_tok =
          static_cast<int>(get_int(text, "num_experts_per_tok", source, 1, experts)),
      .moe_intermediate_size = get_size(text, "moe_intermediate_size", source),
      .norm_topk_prob = get_bool_or(text, "norm_topk_prob", false, source),
      .dense_layers = layers_without_experts(config),
  };
}

}  // namespace whimbrel
