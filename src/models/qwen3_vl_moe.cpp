// Qwen3-VL-MoE (arXiv 2511.21631; HF modeling_qwen3_vl_moe): the same tower and prompt as the dense
// model, experts in place of dense feed-forwards. The chosen experts' weights always have the
// sum 1.

#include "models/deepstack_family.h"

namespace whimbrel {

namespace {

nn::DecoderConfig decoder_config(const ModelConfig& config) {
  nn::DecoderConfig decoder = deepstack_decoder_config(config);
  decoder.moe = read_moe_config(config);
  decoder.moe->norm_topk_prob = true;  // whatever the file says, as in transformers
  return decoder;
}

}  // namespace

extern const Family qwen3_vl_moe;
const Family qwen3_vl_moe = deepstack_family<decoder_config>("qwen3_vl_moe");

}  // namespace whimbrel
