// Qwen2.5-VL (arXiv 2502.13923; HF modeling_qwen2_5_vl). Odd about it: the vision tower attends
// inside windows of 112 x 112 pixels except in a few blocks, so its merged units are put into
// window order in front and back behind the merger; and its norms are RMS norms, its MLP gated,
// with bias.

#include <fmt/format.h>
#include <mlx/mlx.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "models/config_keys.h"
#include "models/vision_family.h"
#include "nn/mlp.h"
#include "nn/residual.h"
#include "nn/vision_layers.h"

namespace whimbrel {

namespace {

struct TowerConfig {
  nn::VisionConfig vision;
  int window_size;  // pixels
  std::vector<int64_t> fullatt_block_indexes;

  int global_blocks() const {
    const std::set<int64_t> blocks(fullatt_block_indexes.begin(), fullatt_block_indexes.end());
    return static_cast<int>(blocks.size());
  }

  int window_side() const {
    return window_size / (vision.patch.patch_size * vision.spatial_merge_size);
  }
};

nn::DecoderConfig decoder_config(const ModelConfig& config) {
  nn::DecoderConfig decoder = read_text_config(config);
  decoder.attention.qkv_bias = nn::Bias::present;
  require_interleaved(config, false);
  decoder.rope_axes = nn::chunked_axes(read_mrope_section(config, {16, 24, 24}));
  return decoder;
}

void require_windows(const TowerConfig& tower, const JsonSource& source) {
  if (tower.window_size % (tower.vision.patch.patch_size * tower.vision.spatial_merge_size) != 0) {
    throw Error(
        Fault::model,
        source.where,
        "got window_size {}, expected a multiple of patch_size * spatial_merge_size",
        tower.window_size
    );
  }
  for (const int64_t block : tower.fullatt_block_indexes) {
    if (block >= tower.vision.depth) {
      throw Error(
          Fault::model,
          source.where,
          "got {} in fullatt_block_indexes, expected blocks below the depth of {}",
          block,
          tower.vision.depth
      );
    }
  }
}

TowerConfig tower_config(const ModelConfig& config) {
  const JsonSource source = vision_source(config);
  const Json& vision = config.vision;
  const VisionWidths widths{
      .hidden_size = get_size(vision, "hidden_size", source),
      .intermediate_size = get_size(vision, "intermediate_size", source),
      .out_hidden_size = get_size(vision, "out_hidden_size", source),
  };
  TowerConfig parsed{
      .vision = read_vision_config(config, widths, "silu"),
      .window_size = get_size(vision, "window_size", source),
      .fullatt_block_indexes = get_ints(vision, "fullatt_block_indexes", source),
  };
  require_windows(parsed, source);
  return parsed;
}

/// The tower: patches -> one row of the decoder's width for each merged unit.
class Tower {
 public:
  Tower(const nn::WeightLoader& loader, const TowerConfig& config)
      : ops_(loader.ops()),
        config_(config),
        patch_embed_(loader.patch_embedding(
            "visual.patch_embed.proj",
            config.vision.hidden_size,
            config.vision.patch,
            nn::Bias::absent
        )),
        merger_(
            loader,
            loader.rms_norm("visual.merger.ln_q", config.vision.hidden_size, nn::kVisionEps),
            {"visual.merger.mlp.0", "visual.merger.mlp.2"},
            config.vision.merged_width(),
            config.vision.out_hidden_size
        ) {
    for (int i = 0; i < config.vision.depth; ++i) {
      blocks_.push_back(load_block(loader, config.vision, fmt::format("visual.blocks.{}", i)));
    }
  }

  nn::Features operator()(const Patches& patches, const nn::StageListener& on_stage) const {
    const nn::Windows windows = nn::window_partition(
        patches.grid_thw, config_.vision.spatial_merge_size, config_.window_side()
    );
    const std::vector<int> frames = nn::frame_segments(patches.grid_thw);
    const ops::RopeTables rope = windowed_rope(patches.grid_thw, windows);
    const nn::StageReporter report(on_stage);
    mx::array x = ops_.linear(ops::prefill_rows(nn::patch_rows(ops_, patches)), *patch_embed_);
    report("visual.patch_embed", x);
    x = take_units(x, windows.order);
    for (int i = 0; i < config_.vision.depth; ++i) {
      const Block& block = blocks_[static_cast<size_t>(i)];
      const std::vector<int>& segments = attends_fully(i) ? frames : windows.cu_seqlens;
      const auto on_piece = report.parts_of("visual.blocks.{}.attn", i);
      x = block.mlp(ops_, ops::prefill_rows(block.attn(ops_, x, rope, segments, on_piece)));
      nn::assert_residual_dtype(x, ops_.dtype(), i);
      report("visual.blocks.{}", i, x);
    }
    const mx::array inverse(windows.inverse.begin(), {static_cast<int>(windows.inverse.size())});
    mx::array rows = mx::take(merger_(ops_, x), inverse, 0);
    report("visual.merger", rows);
    return {std::move(rows), {}};
  }

 private:
  struct Block {
    nn::VisionAttention attn;
    nn::SwigluMlp mlp;
  };

  static Block load_block(
      const nn::WeightLoader& loader, const nn::VisionConfig& config, const std::string& path
  ) {
    const int width = config.hidden_size;
    return {
        nn::VisionAttention(
            loader,
            loader.rms_norm(path + ".norm1", width, nn::kVisionEps),
            path + ".attn",
            width,
            config.num_heads
        ),
        nn::SwigluMlp(
            loader,
            path + ".norm2",
            path + ".mlp",
            width,
            config.intermediate_size,
            nn::kVisionEps,
            nn::Bias::present
        )
    };
  }

  bool attends_fully(int block) const {
    return std::ranges::count(config_.fullatt_block_indexes, int64_t{block}) != 0;
  }

  int unit() const { return config_.vision.spatial_merge_size * config_.vision.spatial_merge_size; }

  /// Reorders merged units: rows of `unit()` patches each.
  mx::array take_units(const mx::array& x, const std::vector<int32_t>& order) const {
    const mx::array units = mx::reshape(x, {-1, unit(), x.shape(-1)});
    const mx::array index(order.begin(), {static_cast<int>(order.size())});
    return mx::reshape(mx::take(units, index, 0), x.shape());
  }

  ops::RopeTables windowed_rope(const nn::Grid& grid, const nn::Windows& windows) const {
    const nn::PatchPositions positions =
        nn::patch_positions(grid, config_.vision.spatial_merge_size);
    nn::PatchPositions windowed;
    for (const int32_t from : windows.order) {
      for (int i = 0; i < unit(); ++i) {
        const size_t patch = static_cast<size_t>(from) * unit() + i;
        windowed.rows.push_back(positions.rows[patch]);
        windowed.columns.push_back(positions.columns[patch]);
      }
    }
    return nn::vision_rope(windowed.rows, windowed.columns, config_.vision.head_dim());
  }

  const ops::Ops& ops_;
  TowerConfig config_;
  ops::PackedMatrixPtr patch_embed_;
  std::vector<Block> blocks_;
  nn::PatchMerger merger_;
};

nn::VisionConfig vision_config(const ModelConfig& config) {
  return tower_config(config).vision;
}

ModelShape shape(const ModelConfig& config) {
  ModelShape shape = model_shape(config, decoder_config(config), vision_config);
  if (shape.vision) {
    shape.vision->global_blocks = tower_config(config).global_blocks();
  }
  return shape;
}

double read_tokens_per_second(const ModelConfig& config) {
  constexpr double kMost = 1000;
  const JsonSource source = vision_source(config);
  const double given = get_number_or(config.vision, "tokens_per_second", 2, source);
  if (!(given > 0 && given <= kMost)) {
    throw Error(
        Fault::model,
        source.where,
        "got \"tokens_per_second\": {}, expected a number over 0 and at most {}",
        given,
        kMost
    );
  }
  return given;
}

std::optional<MediaRules> media_rules(const ModelConfig& config) {
  MediaRules rules = read_media_rules(config, vision_config(config));
  rules.image_bounds = {.min_pixels = 3136, .max_pixels = 12845056};
  rules.video_timing = VideoTiming::by_seconds;
  rules.tokens_per_second = read_tokens_per_second(config);
  rules.video = {
      .frame_count = FrameCount::even,
      .sizing = VideoSizing::per_frame,
      .bounds = {.min_pixels = 128 * 28 * 28, .max_pixels = 768 * 28 * 28},
  };
  rules.boxes = BoxConvention::resized_pixels;
  return rules;
}

Model load(const ModelConfig& config, const nn::WeightLoader& loader) {
  return load_vision_model(config, decoder_config(config), loader, [&] {
    return Tower(loader, tower_config(config));
  });
}

}  // namespace

extern const Family qwen2_5_vl;
const Family qwen2_5_vl = {
    .model_type = "qwen2_5_vl", .shape = shape, .media_rules = media_rules, .load = load
};

}  // namespace whimbrel
