#pragma once

#include "models/family.h"
#include "models/text_family.h"
#include "models/vision_config.h"

namespace whimbrel {

/// A vision model's sizes; `read_vision_config` is asked for the tower's unless config.json, that
/// of a text-only conversion, has no vision_config.
ModelShape model_shape(
    const ModelConfig& config,
    const nn::DecoderConfig& decoder,
    nn::VisionConfig (*read_vision_config)(const ModelConfig& config)
);

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
