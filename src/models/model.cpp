#include "models/model.h"

#include <stdexcept>

namespace whimbrel {

Model::Model(nn::Decoder decoder, VisionTower tower)
    : decoder_(std::move(decoder)), tower_(std::move(tower)) {}

nn::KVCache Model::make_cache(int kv_bits) const {
  const ops::HeadShape& heads = config().attention.heads;
  return {
      config().num_hidden_layers,
      heads,
      ops::kv_format(kv_bits, decoder_.kv_dtype(), heads.head_dim)
  };
}

nn::Features Model::encode(const Patches& patches, const nn::StageListener& on_stage) const {
  if (!tower_) {
    throw std::logic_error("[encode] got media for a model without vision tower");
  }
  return tower_(patches, on_stage);
}

mx::array Model::forward(
    std::span<const nn::Chunk> chunks,
    std::span<nn::KVCache* const> caches,
    const nn::StageListener& on_stage
) const {
  return decoder_.forward(chunks, caches, on_stage);
}

mx::array Model::forward(
    const nn::Chunk& chunk,
    nn::KVCache& cache,
    const nn::StageListener& on_stage,
    const nn::LayerForcing& forced
) const {
  nn::KVCache* const caches[] = {&cache};
  return decoder_.forward({&chunk, 1}, caches, on_stage, forced);
}

mx::array Model::logits(const mx::array& hidden) const {
  return decoder_.logits(hidden);
}

}  // namespace whimbrel
