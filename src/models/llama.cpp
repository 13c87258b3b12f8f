// Llama 2 and its like without rope scaling (arXiv 2307.09288; HF modeling_llama): the plain
// decoder.

#include "models/text_family.h"

namespace whimbrel {

namespace {

nn::DecoderConfig decoder_config(const ModelConfig& config) {
  return read_text_config(config);
}

ModelShape shape(const ModelConfig& config) {
  return model_shape(decoder_config(config));
}

Model load(const ModelConfig& config, const nn::WeightLoader& loader) {
  return Model(load_decoder(config, decoder_config(config), loader));
}

}  // namespace

extern const Family llama;
const Family llama = {.model_type = "llama", .shape = shape, .media_rules = no_media, .load = load};

}  // namespace whimbrel
