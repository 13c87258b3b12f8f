#include "models/text_family.h"

#include "weights/tied_head.h"

namespace whimbrel {

std::optional<MediaRules> no_media(const ModelConfig&) {
  return std::nullopt;
}

ModelShape model_shape(const nn::DecoderConfig& decoder) {
  return {
      .layers = decoder.num_hidden_layers,
      .hidden_size = decoder.hidden_size,
      .intermediate_size = decoder.intermediate_size,
      .vocab_size = decoder.vocab_size,
      .max_position_embeddings = decoder.max_position_embeddings,
      .heads = decoder.attention.heads,
      .vision = std::nullopt,
  };
}

nn::Decoder load_decoder(
    const ModelConfig& config, const nn::DecoderConfig& decoder, const nn::WeightLoader& loader
) {
  return {loader, decoder, head_is_tied(loader.checkpoint(), config)};
}

}  // namespace whimbrel
