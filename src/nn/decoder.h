#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "nn/attention.h"
#include "nn/chunk.h"
#include "nn/kv_cache.h"
#include "nn/loader.h"
#include "nn/mlp.h"
#include "nn/moe.h"
#include "nn/rope.h"
#include "nn/stage.h"

namespace whimbrel::nn {

/// Everything that differs between the text decoders of the families.
struct DecoderConfig {
  int hidden_size;
  int intermediate_size;  // of dense layers
  int num_hidden_layers;
  int vocab_size;
  int max_position_embeddings;
  double rms_norm_eps;
  AttentionConfig attention;
  double rope_theta;
  std::vector<int> rope_axes;    // axis of each rotary frequency (nn/rope.h)
  std::optional<MoeConfig> moe;  // nothing: all layers are dense
};

/// A text decoder: embedding, layers, final norm and head.
class Decoder {
 public:
  /// Takes `model.*` and `lm_head` from the loader's checkpoint; `tied` says that the embedding is
  /// the head.
  Decoder(const WeightLoader& loader, const DecoderConfig& config, bool tied);

  const DecoderConfig& config() const { return config_; }

  /// Of its operations (ops::Ops::rounding).
  mx::Dtype rounding() const { return ops_.rounding(); }

  /// What activations are held in.
  mx::Dtype dtype() const { return ops_.dtype(); }

  /// Of a cache without codes.
  mx::Dtype kv_dtype() const { return ops_.kv_dtype(); }

  /// Runs the chunks' tokens, prompts' in front, each behind those of its cache, where they are
  /// appended ->
  /// the hidden states before the final norm, the chunks' rows one behind the other
  /// [rows, hidden_size]. A listener hears routers, too (`model.layers.0.mlp.gate`: their logits).
  mx::array forward(
      std::span<const Chunk> chunks,
      std::span<KVCache* const> caches,
      const StageListener& on_stage,
      const LayerForcing& forced = {}
  ) const;

  /// Final norm and head, never of rounded rows: hidden [rows, hidden_size] -> [rows, vocab_size].
  mx::array logits(const mx::array& hidden) const;

  /// ops::Ops::peaks.
  mx::array peaks(const mx::array& logits) const { return ops_.peaks(logits); }

 private:
  struct Layer {
    Attention self_attn;
    std::variant<SwigluMlp, MoeMlp> mlp;
  };

  Layer load_layer(const WeightLoader& loader, int index) const;
  std::vector<SequenceRows> plan(
      std::span<const Chunk> chunks, std::span<KVCache* const> caches
  ) const;

  const ops::Ops& ops_;
  DecoderConfig config_;
  Rope rope_;
  ops::PackedMatrixPtr embed_tokens_;
  std::vector<Layer> layers_;
  ops::RmsNorm norm_;
  ops::PackedMatrixPtr lm_head_;
};

}  // namespace whimbrel::nn
