#pragma once

#include <functional>
#include <span>

#include "media/image_processor.h"
#include "nn/decoder.h"
#include "nn/kv_cache.h"
#include "nn/stage.h"

namespace whimbrel {

namespace mx = mlx::core;

/// A family's vision tower on one picture or video.
using VisionTower = std::function<nn::Features(const Patches&, const nn::StageListener&)>;

/// A loaded model: a text decoder, and a vision tower where it has one. Const after load; what a
/// sequence changes lives in its cache.
class Model {
 public:
  explicit Model(nn::Decoder decoder, VisionTower tower = {});

  /// An empty cache that holds keys and values in the activation dtype (0 bits) or in 8 bits.
  /// Throws Error(Fault::usage) as ops::kv_format does.
  nn::KVCache make_cache(int kv_bits = 0) const;

  /// The vision tower on one picture or video. A model without tower is never asked: its prompts
  /// hold no media (std::logic_error).
  nn::Features encode(const Patches& patches, const nn::StageListener& on_stage = {}) const;

  /// Runs several sequences in one step, prompts' chunks in front: each chunk's tokens behind those
  /// of its cache, which they are appended to -> the hidden state of each token before the final
  /// norm, the chunks' rows one behind the other [rows, hidden_size].
  mx::array forward(
      std::span<const nn::Chunk> chunks,
      std::span<nn::KVCache* const> caches,
      const nn::StageListener& on_stage = {}
  ) const;

  /// The same for one sequence.
  mx::array forward(
      const nn::Chunk& chunk,
      nn::KVCache& cache,
      const nn::StageListener& on_stage = {},
      const nn::LayerForcing& forced = {}
  ) const;

  /// Final norm and language model head: hidden [rows, hidden_size] -> [rows, vocab_size].
  mx::array logits(const mx::array& hidden) const;

  /// The largest of each run of logits (ops::Ops::peaks).
  mx::array peaks(const mx::array& logits) const { return decoder_.peaks(logits); }

  /// The coarsest dtype that its operations round activations to.
  mx::Dtype rounding() const { return decoder_.rounding(); }

  /// What activations are held in.
  mx::Dtype dtype() const { return decoder_.dtype(); }

  /// Of a cache without codes.
  mx::Dtype kv_dtype() const { return decoder_.kv_dtype(); }

  const nn::DecoderConfig& config() const { return decoder_.config(); }

 private:
  nn::Decoder decoder_;
  VisionTower tower_;
};

}  // namespace whimbrel
