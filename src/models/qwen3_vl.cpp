// Qwen3-VL (arXiv 2511.21631; HF modeling_qwen3_vl). Odd about it: axes of the multimodal rope take
// turns, frames of a video stand behind their time in words, and inner blocks of the tower add to
// the first decoder layers.

#include "models/deepstack_family.h"

namespace whimbrel {

extern const Family qwen3_vl;
const Family qwen3_vl = deepstack_family<deepstack_decoder_config>("qwen3_vl");

}  // namespace whimbrel
