#pragma once

#include <utility>
#include <vector>

#include "nn/chunk.h"
#include "nn/position_table.h"
#include "nn/stage.h"
#include "nn/vision.h"
#include "nn/vision_layers.h"

namespace whimbrel::nn {

/// A tower with learned positions that also hands the decoder what some inner blocks put out.
struct DeepstackTowerConfig {
  VisionConfig vision;
  int position_table_side;             // the table has side * side entries
  std::vector<int> deepstack_indexes;  // blocks behind which features are taken, in order
};

/// The vision tower of Qwen3-VL (HF Qwen3VLVisionModel): patch embedding, interpolated positions,
/// blocks with full attention inside a frame, a merger at the end and one behind each deepstack
/// block. The tanh GELU in blocks, the exact one in mergers.
class DeepstackTower {
 public:
  /// Takes `visual.*` from the loader's checkpoint.
  DeepstackTower(const WeightLoader& loader, const DeepstackTowerConfig& config);

  Features operator()(const Patches& patches, const StageListener& on_stage) const;

 private:
  struct Block {
    VisionAttention attn;
    GeluMlp mlp;
  };

  static Block load_block(const WeightLoader& loader, const VisionConfig& config, int index);
  mx::array embed(const Patches& patches) const;

  const ops::Ops& ops_;
  DeepstackTowerConfig config_;
  ops::PackedMatrixPtr patch_embed_;
  ops::PackedMatrixPtr pos_embed_;
  std::vector<Block> blocks_;
  PatchMerger merger_;
  std::vector<PatchMerger> deepstack_mergers_;
};

}  // namespace whimbrel::nn
