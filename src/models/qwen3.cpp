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

}  // namespace

extern const Family qwen3;
const Family qwen3 = text_family<decoder_config>("qwen3");

}  // namespace whimbrel
