#include "nn/deepstack_tower.h"

#include <fmt/format.h>
#include <mlx/mlx.h>

#include "nn/residual.h"

namespace whimbrel::nn {

namespace {

/// `norm_width` is the tower's width where the norm runs over patches, and that of a merged unit
/// where it runs over units.
PatchMerger load_merger(
    const WeightLoader& loader, const std::string& path, const VisionConfig& config, int norm_width
) {
  return {
      loader,
      loader.layer_norm(path + ".norm", norm_width, kVisionEps),
      {path + ".linear_fc1", path + ".linear_fc2"},
      config.merged_width(),
      config.out_hidden_size
  };
}

}  // namespace

DeepstackTower::DeepstackTower(const WeightLoader& loader, const DeepstackTowerConfig& config)
    : ops_(loader.ops()),
      config_(config),
      patch_embed_(loader.patch_embedding(
          "visual.patch_embed.proj", config.vision.hidden_size, config.vision.patch, Bias::present
      )),
      pos_embed_(loader.embedding(
          "visual.pos_embed",
          int64_t{config.position_table_side} * config.position_table_side,
          config.vision.hidden_size
      )),
      merger_(load_merger(loader, "visual.merger", config.vision, config.vision.hidden_size)) {
  for (int i = 0; i < config.vision.depth; ++i) {
    blocks_.push_back(load_block(loader, config.vision, i));
  }
  for (size_t i = 0; i < config.deepstack_indexes.size(); ++i) {
    const std::string path = fmt::format("visual.deepstack_merger_list.{}", i);
    const int unit_width = config.vision.merged_width();
    deepstack_mergers_.push_back(load_merger(loader, path, config.vision, unit_width));
  }
}

DeepstackTower::Block DeepstackTower::load_block(
    const WeightLoader& loader, const VisionConfig& config, int index
) {
  const std::string path = fmt::format("visual.blocks.{}", index);
  const int width = config.hidden_size;
  return {
      VisionAttention(
          loader,
          loader.layer_norm(path + ".norm1", width, kVisionEps),
          path + ".attn",
          width,
          config.num_heads
      ),
      GeluMlp(
          loader,
          loader.layer_norm(path + ".norm2", width, kVisionEps),
          {path + ".mlp.linear_fc1", path + ".mlp.linear_fc2"},
          width,
          config.intermediate_size,
          ops::Gelu::tanh
      )
  };
}

mx::array DeepstackTower::embed(const Patches& patches) const {
  const TableCorners corners = table_corners(
      patches.grid_thw, config_.vision.spatial_merge_size, config_.position_table_side
  );
  return mx::add(
      ops_.linear(ops::prefill_rows(patch_rows(ops_, patches)), *patch_embed_),
      interpolate_positions(ops_, *pos_embed_, corners)
  );
}

Features DeepstackTower::operator()(const Patches& patches, const StageListener& on_stage) const {
  const VisionConfig& vision = config_.vision;
  const PatchPositions positions = patch_positions(patches.grid_thw, vision.spatial_merge_size);
  const ops::RopeTables rope = vision_rope(positions.rows, positions.columns, vision.head_dim());
  const std::vector<int> frames = frame_segments(patches.grid_thw);
  const StageReporter report(on_stage);
  mx::array x = embed(patches);
  report("visual.patch_embed", x);
  std::vector<mx::array> deepstack;
  for (int i = 0; i < vision.depth; ++i) {
    const Block& block = blocks_[static_cast<size_t>(i)];
    const auto on_piece = report.parts_of("visual.blocks.{}.attn", i);
    x = block.mlp(ops_, block.attn(ops_, x, rope, frames, on_piece));
    assert_residual_dtype(x, ops_.dtype(), i);
    report("visual.blocks.{}", i, x);
    const size_t next = deepstack.size();
    if (next < deepstack_mergers_.size() && config_.deepstack_indexes[next] == i) {
      deepstack.push_back(deepstack_mergers_[next](ops_, x));
      report("visual.deepstack_merger_list.{}", static_cast<int>(next), deepstack.back());
    }
  }
  mx::array rows = merger_(ops_, x);
  report("visual.merger", rows);
  return {std::move(rows), std::move(deepstack)};
}

}  // namespace whimbrel::nn
