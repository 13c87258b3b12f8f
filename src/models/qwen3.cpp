// Qwen3 text (arXiv 2505.09388; HF modeling_qwen3). Odd about it: each head of q and k is normed
// before rope.

#include "models/text_family.h"

namespace whimbrel {

namespace {

nn::DecoderConfig decoder_config(const ModelConfig& config) {
  nn::DecoderConfig decoder = read_text_config(config);
  decoder.attention.head_norms = true;
  return decoder;
}

ModelShape shape(const ModelConfig& config) {
  return model_shape(decoder_config(config));
}

Model load(const ModelConfig& config, const nn::WeightLoader& loader) {
  return Model(load_decoder(config, decoder_config(config), loader));
}

}  // namespace

extern const Family qwen3;
const Family qwen3 = {.model_type = "qwen3", .shape = shape, .media_rules = no_media, .load = load};

}  // namespace whimbrel
