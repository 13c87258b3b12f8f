#include "models/text_family.h"

#include <algorithm>

#include "weights/tied_head.h"

namespace whimbrel {

namespace {

int active_intermediate_size(const nn::DecoderConfig& decoder) {
  if (!decoder.moe) {
    return decoder.intermediate_size;
  }
  const int chosen = decoder.moe->num_experts_per_tok * decoder.moe->moe_intermediate_size;
  return decoder.moe->dense_layers.empty() ? chosen : std::max(chosen, decoder.intermediate_size);
}

}  // namespace

ModelShape model_shape(const nn::DecoderConfig& decoder) {
  return {
      .layers = decoder.num_hidden_layers,
      .hidden_size = decoder.hidden_size,
      .intermediate_size = decoder.intermediate_size,
      .active_intermediate_size = active_intermediate_size(decoder),
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
