#include "models/vision_family.h"

namespace whimbrel {

ModelShape model_shape(
    const ModelConfig& config,
    const nn::DecoderConfig& decoder,
    nn::VisionConfig (*read_vision_config)(const ModelConfig& config)
) {
  ModelShape shape = model_shape(decoder);
  if (config.vision.empty()) {
    return shape;
  }
  const nn::VisionConfig vision = read_vision_config(config);
  shape.vision = TowerShape{
      .depth = vision.depth,
      .global_blocks = vision.depth,
      .hidden_size = vision.hidden_size,
      .intermediate_size = vision.intermediate_size,
      .heads = vision.num_heads,
  };
  return shape;
}

}  // namespace whimbrel
