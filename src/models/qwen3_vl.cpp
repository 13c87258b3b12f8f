// Qwen3-VL (arXiv 2511.21631; HF modeling_qwen3_vl). Odd about it: axes of the multimodal rope take
// turns, frames of a video stand behind their time in words, and inner blocks of the tower add to
// the first decoder layers.

#include "models/deepstack_family.h"

namespace whimbrel {

namespace {

ModelShape shape(const ModelConfig& config) {
  return model_shape(config, deepstack_decoder_config(config), deepstack_vision_config);
}

Model load(const ModelConfig& config, const nn::WeightLoader& loader) {
  return load_deepstack_model(config, deepstack_decoder_config(config), loader);
}

}  // namespace

extern const Family qwen3_vl;
const Family qwen3_vl = {
    .model_type = "qwen3_vl",
    .shape = shape,
    .media_rules = deepstack_media_rules,
    .load = load,
};

}  // namespace whimbrel
