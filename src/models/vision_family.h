#pragma once

#include "models/family.h"
#include "models/text_family.h"
#include "models/vision_config.h"

namespace whimbrel {

/// A vision model's sizes.
ModelShape model_shape(const nn::DecoderConfig& decoder, const nn::VisionConfig& vision);

/// The decoder, and the tower that `make_tower` loads; without one where the checkpoint is a
/// text-only conversion.
template <typename MakeTower>
Model load_vision_model(
    const ModelConfig& config,
    const nn::DecoderConfig& decoder,
    const nn::WeightLoader& loader,
    const MakeTower& make_tower
) {
  nn::Decoder loaded = load_decoder(config, decoder, loader);
  if (!loader.checkpoint().has_under("visual.")) {
    return Model(std::move(loaded));
  }
  return Model(std::move(loaded), make_tower());
}

}  // namespace whimbrel
