#pragma once

#include <functional>
#include <span>
#include <string>

#include "nn/loader.h"
#include "ops/ops.h"

namespace whimbrel::nn {

/// Attention of a tower's block: norm, q, k and v in one projection, attention inside segments,
/// output projection and residual.
class VisionAttention {
 public:
  /// `path` is that of the module with qkv and proj (`visual.blocks.0.attn`), both with bias.
  VisionAttention(
      const WeightLoader& loader,
      ops::Norm norm,
      const std::string& path,
      int64_t hidden_size,
      int num_heads
  );

  /// x [patches, hidden_size] -> the residual stream behind attention, same shape and dtype.
  /// Where there is an `on_piece` it is given the parts of a long attention one after the other.
  mx::array operator()(
      const ops::Ops& ops,
      const mx::array& x,
      const ops::RopeTables& rope,
      std::span<const int> cu_seqlens,
      const std::function<void(const mx::array& piece)>& on_piece
  ) const;

 private:
  int num_heads_;
  ops::Norm norm_;
  ops::PackedMatrixPtr qkv_;
  ops::PackedMatrixPtr proj_;
};

/// Paths of a feed-forward's two linear layers, both with bias.
struct MlpPaths {
  std::string fc1;
  std::string fc2;
};

/// Norm, feed-forward with a GELU in the middle, and residual: of a tower's block.
class GeluMlp {
 public:
  GeluMlp(
      const WeightLoader& loader,
      ops::Norm norm,
      const MlpPaths& paths,
      int64_t hidden_size,
      int64_t intermediate_size,
      ops::Gelu gelu
  );

  /// x [patches, hidden_size] -> the residual stream behind the layer, same shape and dtype.
  mx::array operator()(const ops::Ops& ops, const mx::array& x) const;

 private:
  ops::Norm norm_;
  ops::PackedMatrixPtr fc1_;
  ops::PackedMatrixPtr fc2_;
  ops::Gelu gelu_;
};

/// Makes one row of the decoder's width from the rows of a merged unit's patches: norm, then two
/// linear layers with the exact GELU between them. The norm's width decides whether it runs over
/// each patch or over the whole unit.
class PatchMerger {
 public:
  PatchMerger(
      const WeightLoader& loader,
      ops::Norm norm,
      const MlpPaths& paths,
      int64_t merged_width,
      int64_t out_hidden_size
  );

  /// x [patches, hidden_size] -> [units, out_hidden_size].
  mx::array operator()(const ops::Ops& ops, const mx::array& x) const;

 private:
  int merged_width_;
  int norm_width_;
  ops::Norm norm_;
  ops::PackedMatrixPtr fc1_;
  ops::PackedMatrixPtr fc2_;
};

}  // namespace whimbrel::nn
