// Qwen2-VL (arXiv 2409.12191; HF modeling_qwen2_vl). Odd about it: `hidden_size` of vision_config
// is the decoder's width and `embed_dim` the tower's own, and the tower's GELU is the quick one.

#include <fmt/format.h>
#include <mlx/mlx.h>

#include <cmath>

#include "base/error.h"
#include "models/config_keys.h"
#include "models/vision_family.h"
#include "nn/residual.h"
#include "nn/vision_layers.h"

namespace whimbrel {

namespace {

nn::DecoderConfig decoder_config(const ModelConfig& config) {
  nn::DecoderConfig decoder = read_text_config(config);
  decoder.attention.qkv_bias = nn::Bias::present;
  require_interleaved(config, false);
  decoder.rope_axes = nn::chunked_axes(read_mrope_section(config, {16, 24, 24}));
  return decoder;
}

int intermediate_size(const ModelConfig& config, int embed_dim) {
  const JsonSource source = vision_source(config);
  const double ratio = get_number(config.vision, "mlp_ratio", source);
  const double width = ratio * embed_dim;
  if (width < 1 || width > 1e6 || width != std::floor(width)) {
    throw Error(
        Fault::model,
        source.where,
        "got mlp_ratio {} for embed_dim {}, expected a whole number of columns",
        ratio,
        embed_dim
    );
  }
  return static_cast<int>(width);
}

nn::VisionConfig vision_config(const ModelConfig& config) {
  const JsonSource source = vision_source(config);
  const int embed_dim = get_size(config.vision, "embed_dim", source);
  const VisionWidths widths{
      .hidden_size = embed_dim,
      .intermediate_size = intermediate_size(config, embed_dim),
      .out_hidden_size = get_size(config.vision, "hidden_size", source),
  };
  return read_vision_config(config, widths, "quick_gelu");
}

/// The tower: patches -> one row of the decoder's width for each merged unit. Full attention inside
/// each frame.
class Tower {
 public:
  Tower(const nn::WeightLoader& loader, const nn::VisionConfig& config)
      : ops_(loader.ops()),
        config_(config),
        patch_embed_(loader.patch_embedding(
            "visual.patch_embed.proj", config.hidden_size, config.patch, nn::Bias::absent
        )),
        merger_(
            loader,
            loader.layer_norm("visual.merger.ln_q", config.hidden_size, nn::kVisionEps),
            {"visual.merger.mlp.0", "visual.merger.mlp.2"},
            config.merged_width(),
            config.out_hidden_size
        ) {
    for (int i = 0; i < config.depth; ++i) {
      blocks_.push_back(load_block(loader, config, fmt::format("visual.blocks.{}", i)));
    }
  }

  nn::Features operator()(const Patches& patches, const nn::StageListener& on_stage) const {
    const nn::PatchPositions positions =
        nn::patch_positions(patches.grid_thw, config_.spatial_merge_size);
    const ops::RopeTables rope =
        nn::vision_rope(positions.rows, positions.columns, config_.head_dim());
    const std::vector<int> frames = nn::frame_segments(patches.grid_thw);
    const nn::StageReporter report(on_stage);
    mx::array x = ops_.linear(ops::prefill_rows(nn::patch_rows(ops_, patches)), *patch_embed_);
    report("visual.patch_embed", x);
    for (int i = 0; i < config_.depth; ++i) {
      const Block& block = blocks_[static_cast<size_t>(i)];
      const auto on_piece = report.parts_of("visual.blocks.{}.attn", i);
      x = block.mlp(ops_, block.attn(ops_, x, rope, frames, on_piece));
      nn::assert_residual_dtype(x, ops_.dtype(), i);
      report("visual.blocks.{}", i, x);
    }
    mx::array rows = merger_(ops_, x);
    report("visual.merger", rows);
    return {std::move(rows), {}};
  }

 private:
  struct Block {
    nn::VisionAttention attn;
    nn::GeluMlp mlp;
  };

  static Block load_block(
      const nn::WeightLoader& loader, const nn::VisionConfig& config, const std::string& path
  ) {
    const int width = config.hidden_size;
    return {
        nn::VisionAttention(
            loader,
            loader.layer_norm(path + ".norm1", width, nn::kVisionEps),
            path + ".attn",
            width,
            config.num_heads
        ),
        nn::GeluMlp(
            loader,
            loader.layer_norm(path + ".norm2", width, nn::kVisionEps),
            {path + ".mlp.fc1", path + ".mlp.fc2"},
            width,
            config.intermediate_size,
            ops::Gelu::quick
        )
    };
  }

  const ops::Ops& ops_;
  nn::VisionConfig config_;
  ops::PackedMatrixPtr patch_embed_;
  std::vector<Block> blocks_;
  nn::PatchMerger merger_;
};

ModelShape shape(const ModelConfig& config) {
  return model_shape(config, decoder_config(config), vision_config);
}

std::optional<MediaRules> media_rules(const ModelConfig& config) {
  MediaRules rules = read_media_rules(config, vision_config(config));
  rules.image_bounds = {.min_pixels = 3136, .max_pixels = 12845056};
  rules.video_timing = VideoTiming::by_frame;
  rules.video = {
      .frame_count = FrameCount::even,
      .sizing = VideoSizing::per_frame,
      .bounds = {.min_pixels = 128 * 28 * 28, .max_pixels = 768 * 28 * 28},
  };
  rules.boxes = BoxConvention::thousandths;
  rules.box_notation = BoxNotation::pairs;
  return rules;
}

Model load(const ModelConfig& config, const nn::WeightLoader& loader) {
  return load_vision_model(config, decoder_config(config), loader, [&] {
    return Tower(loader, vision_config(config));
  });
}

}  // namespace

extern const Family qwen2_vl;
const Family qwen2_vl = {
    .model_type = "qwen2_vl", .shape = shape, .media_rules = media_rules, .load = load
};

}  // namespace whimbrel
