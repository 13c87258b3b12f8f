#include "models/vision_family.h"

namespace whimbrel {

ModelShape model_shape(const nn::DecoderConfig& decoder, const nn::VisionConfig& vision) {
  ModelShape shape = model_shape(decoder);
  shape.vision = TowerShape{
      .depth = vision.depth,
      .hidden_size = vision.hidden_size,
      .intermediate_size = vision.intermediate_size,
      .heads = vision.num_heads,
  };
  return shape;
}

}  // namespace whimbrel
