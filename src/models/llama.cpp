// Llama 2 and its like without rope scaling (arXiv 2307.09288; HF modeling_llama): the plain
// decoder.

#include "models/text_family.h"

namespace whimbrel {

namespace {

nn::DecoderConfig decoder_config(const ModelConfig& config) {
  return read_text_config(config);
}

}  // namespace

extern const Family llama;
const Family llama = text_family<decoder_config>("llama");

}  // namespace whimbrel
