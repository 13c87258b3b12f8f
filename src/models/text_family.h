#pragma once

#include "models/family.h"
#include "models/text_config.h"

namespace whimbrel {

/// The media rules of a text model: none.
std::optional<MediaRules> no_media(const ModelConfig& config);

/// A text model's sizes.
ModelShape model_shape(const nn::DecoderConfig& decoder);

/// The decoder with its head: lm_head, or the embedding where they are tied.
nn::Decoder load_decoder(
    const ModelConfig& config, const nn::DecoderConfig& decoder, const nn::WeightLoader& loader
);

}  // namespace whimbrel
