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

}  // namespace

extern const Family qwen2;
const Family qwen2 = text_family<decoder_config>("qwen2");

}  // namespace whimbrel
