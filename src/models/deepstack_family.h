#pragma once

#include "models/vision_family.h"
#include "nn/deepstack_tower.h"

namespace whimbrel {

/// A decoder behind a tower with deepstack blocks, but for its feed-forwards: head norms, and axes
/// of the multimodal rope that take turns.
nn::DecoderConfig deepstack_decoder_config(const ModelConfig& config);

/// Reads vision_config of a tower with a table of positions and deepstack blocks. Throws
/// Error(Fault::model) that names the key: a table that isn't square, deepstack blocks that the
/// tower doesn't have or that are more than the decoder's layers.
nn::DeepstackTowerConfig read_deepstack_config(const ModelConfig& config);

/// The tower's common sizes.
nn::VisionConfig deepstack_vision_config(const ModelConfig& config);

/// Bounds of pictures and videos, and frames of a video behind their time in words.
std::optional<MediaRules> deepstack_media_rules(const ModelConfig& config);

/// The decoder and its tower, or without one for a text-only conversion.
Model load_deepstack_model(
    const ModelConfig& config, const nn::DecoderConfig& decoder, const nn::WeightLoader& loader
);

/// A family with such a tower: all that differs is its decoder's configuration.
template <nn::DecoderConfig (*decoder_config)(const ModelConfig& config)>
constexpr Family deepstack_family(std::string_view model_type) {
  return {
      .model_type = model_type,
      .shape = [](
                   const ModelConfig& config
               ) { return model_shape(config, decoder_config(config), deepstack_vision_config); },
      .media_rules = deepstack_media_rules,
      .load = [](
                  const ModelConfig& config, const nn::WeightLoader& loader
              ) { return load_deepstack_model(config, decoder_config(config), loader); },
  };
}

}  // namespace whimbrel
