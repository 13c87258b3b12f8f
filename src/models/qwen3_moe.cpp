// Qwen3-MoE text (arXiv 2505.09388; HF modeling_qwen3_moe): Qwen3 with experts in place of dense
// feed-forwards. The chosen experts' weights are scaled to the sum 1 only where the file says so.

#include "models/text_family.h"

namespace whimbrel {

namespace {

nn::DecoderConfig decoder_config(const ModelConfig& config) {
  nn::DecoderConfig decoder = read_text_config(config);
  decoder.attention.head_norms = true;
  decoder.moe = read_moe_config(config);
  return decoder;
}

}  // namespace

extern const Family qwen3_moe;
const Family qwen3_moe = text_family<decoder_config>("qwen3_moe");

}  // namespace whimbrel
