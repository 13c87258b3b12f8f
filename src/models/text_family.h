#pragma once

#include "models/family.h"
#include "models/text_config.h"

namespace whimbrel {

/// A text model's sizes.
ModelShape model_shape(const nn::DecoderConfig& decoder);

/// The decoder with its head: lm_head, or the embedding where they are tied.
nn::Decoder load_decoder(
    const ModelConfig& config, const nn::DecoderConfig& decoder, const nn::WeightLoader& loader
);

/// A family without tower: all that differs is its decoder's configuration.
template <nn::DecoderConfig (*decoder_config)(const ModelConfig& config)>
constexpr Family text_family(std::string_view model_type) {
  return {
      .model_type = model_type,
      .shape = [](const ModelConfig& config) { return model_shape(decoder_config(config)); },
      .media_rules = [](const ModelConfig&) { return std::optional<MediaRules>(); },
      .load = [](
                  const ModelConfig& config, const nn::WeightLoader& loader
              ) { return Model(load_decoder(config, decoder_config(config), loader)); },
  };
}

}  // namespace whimbrel
