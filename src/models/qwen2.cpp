// Qwen2 and Qwen2.5 text (arXiv 2407.10671; HF modeling_qwen2). Odd about it: q, k and v have
// biases, which no key says.

#include "models/text_family.h"

namespace whimbrel {

namespace {

nn::DecoderConfig decoder_config(const ModelConfig& config) {
  nn::DecoderConfig decoder = read_text_config(config);
  decoder.attention.qkv_bias = nn::Bias::present;
  return decoder;
}

ModelShape shape(const ModelConfig& config) {
  return model_shape(decoder_config(config));
}

Model load(const ModelConfig& config, const nn::WeightLoader& loader) {
  return Model(load_decoder(config, decoder_config(config), loader));
}

}  // namespace

extern const Family qwen2;
const Family qwen2 = {.model_type = "qwen2", .shape = shape, .media_rules = no_media, .load = load};

}  // namespace whimbrel
