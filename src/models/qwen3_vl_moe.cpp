// Qwen3-VL-MoE (arXiv 2511.21631; HF modeling_qwen3_vl_moe): the same tower and prompt as the dense
// model, experts in place of dense feed-forwards. The chosen experts' weights always have the
// sum 1.

#include "models/deepstack_config.h"
#include "models/vision_family.h"

namespace whimbrel {

namespace {

nn::DecoderConfig decoder_config(const ModelConfig& config) {
  nn::DecoderConfig decoder = read_text_config(config);
  decoder.attention.head_norms = true;
  require_interleaved(config, true);
  decoder.rope_axes = nn::interleaved_axes(read_mrope_section(config, {24, 20, 20}));
  decoder.moe = read_moe_config(config, /*norm_topk_prob=*/true);
  return decoder;
}

nn::VisionConfig vision_config(const ModelConfig& config) {
  return read_deepstack_config(config).vision;
}

ModelShape shape(const ModelConfig& config) {
  return model_shape(config, decoder_config(config), vision_config);
}

std::optional<MediaRules> media_rules(const ModelConfig& config) {
  MediaRules rules = read_media_rules(config, vision_config(config));
  rules.image_bounds = {.min_pixels = 65536, .max_pixels = 16777216};
  rules.video_timing = VideoTiming::timestamped;
  rules.video = {
      .frame_count = FrameCount::any,
      .sizing = VideoSizing::per_video,
      .bounds = {.min_pixels = 4096, .max_pixels = 25165824},
  };
  return rules;
}

Model load(const ModelConfig& config, const nn::WeightLoader& loader) {
  return load_vision_model(config, decoder_config(config), loader, [&] {
    return nn::DeepstackTower(loader, read_deepstack_config(config));
  });
}

}  // namespace

extern const Family qwen3_vl_moe;
const Family qwen3_vl_moe = {
    .model_type = "qwen3_vl_moe", .shape = shape, .media_rules = media_rules, .load = load
};

}  // namespace whimbrel
