// Qwen2.5-VL (arXiv 2502.13923; HF modeling_qwen2_5_vl). Odd about it: the vision tower attends
// inside windows of 112 x 112 pixels except in a few blocks, so its merged units are put into
// window order in front and back behind the merger; and its norms are RMS norms, its MLP gated,
// with bias.

#include <mlx/mlx.h>

#include <algorithm>

#include "models/family.h"
#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/residual.h"
#include "nn/rope.h"
#include "nn/vision.h"
#include "weights/tied_head.h"

namespace whimbrel {

namespace {

constexpr double kVisionEps = 1e-6;  // not configurable in any file

struct VisionConfig {
  int depth;
  int hidden_size;
  int intermediate_size;
  int num_heads;
  int out_hidden_size;
  int in_channels;
  int patch_size;
  int temporal_patch_size;
  int spatial_merge_size;
  int window_size;  // pixels
  std::vector<int64_t> fullatt_block_indexes;

  int head_dim() const { return hidden_size / num_heads; }
  int window_side() const { return window_size / (patch_size * spatial_merge_size); }
  int merged_width() const { return hidden_size * spatial_merge_size * spatial_merge_size; }
};

struct TextConfig {
  int hidden_size;
  int intermediate_size;
  int num_hidden_layers;
  int vocab_size;
  int max_position_embeddings;
  double rms_norm_eps;
  ops::HeadShape heads;
  RopeConfig rope;
};

int get_size(const Json& object, std::string_view key, const JsonSource& source) {
  return static_cast<int>(get_int(object, key, source));
}

void require_silu(const Json& object, const JsonSource& source) {
  if (has_value(object, "hidden_act") && get_string(object, "hidden_act", source) != "silu") {
    throw Error(
        Fault::model,
        source.where,
        "got hidden_act \"{}\", expected \"silu\" for this family",
        get_string(object, "hidden_act", source)
    );
  }
}

void require_positive(double value, std::string_view key, const JsonSource& source) {
  if (value <= 0) {
    throw Error(Fault::model, source.where, "got {} {}, expected a number over 0", key, value);
  }
}

TextConfig read_text_config(const ModelConfig& config) {
  const JsonSource source = config.source();
  const Json& text = config.text;
  require_silu(text, source);
  const AttentionShape shape = read_attention_shape(text, source);
  TextConfig parsed{
      .hidden_size = get_size(text, "hidden_size", source),
      .intermediate_size = get_size(text, "intermediate_size", source),
      .num_hidden_layers = get_size(text, "num_hidden_layers", source),
      .vocab_size = get_size(text, "vocab_size", source),
      .max_position_embeddings = get_size(text, "max_position_embeddings", source),
      .rms_norm_eps = get_number(text, "rms_norm_eps", source),
      .heads =
          {static_cast<int>(shape.heads),
           static_cast<int>(shape.kv_heads),
           static_cast<int>(shape.head_dim)},
      .rope = read_rope(text, shape.head_dim, source),
  };
  require_positive(parsed.rms_norm_eps, "rms_norm_eps", source);
  if (parsed.rope.mrope_section.empty()) {
    if (parsed.heads.head_dim != 128) {
      throw Error(Fault::model, source.where, "got no mrope_section, expected one");
    }
    parsed.rope.mrope_section = {16, 24, 24};
  }
  return parsed;
}

VisionConfig read_vision_config(const ModelConfig& config) {
  const JsonSource source{config.source().where + " vision_config"};
  const Json& vision = config.vision;
  require_silu(vision, source);
  const std::string_view channels = has_value(vision, "in_channels") ? "in_channels" : "in_chans";
  VisionConfig parsed{
      .depth = get_size(vision, "depth", source),
      .hidden_size = get_size(vision, "hidden_size", source),
      .intermediate_size = get_size(vision, "intermediate_size", source),
      .num_heads = get_size(vision, "num_heads", source),
      .out_hidden_size = get_size(vision, "out_hidden_size", source),
      .in_channels = static_cast<int>(get_int_or(vision, channels, 3, source)),
      .patch_size = get_size(vision, "patch_size", source),
      .temporal_patch_size = get_size(vision, "temporal_patch_size", source),
      .spatial_merge_size = get_size(vision, "spatial_merge_size", source),
      .window_size = get_size(vision, "window_size", source),
      .fullatt_block_indexes = get_ints(vision, "fullatt_block_indexes", source),
  };
  if (parsed.hidden_size % (4 * parsed.num_heads) != 0) {
    throw Error(
        Fault::model,
        source.where,
        "got hidden_size {} and num_heads {}, expected heads of a width that 4 divides",
        parsed.hidden_size,
        parsed.num_heads
    );
  }
  if (parsed.window_size % (parsed.patch_size * parsed.spatial_merge_size) != 0) {
    throw Error(
        Fault::model,
        source.where,
        "got window_size {}, expected a multiple of patch_size * spatial_merge_size",
        parsed.window_size
    );
  }
  for (const int64_t block : parsed.fullatt_block_indexes) {
    if (block >= parsed.depth) {
      throw Error(
          Fault::model,
          source.where,
          "got {} in fullatt_block_indexes, expected blocks below the depth of {}",
          block,
          parsed.depth
      );
    }
  }
  return parsed;
}

/// One block of the tower: attention inside segments, then the gated MLP.
class VisionBlock {
 public:
  VisionBlock(const nn::WeightLoader& loader, const std::string& path, const VisionConfig& config)
      : heads_(config.num_heads),
        norm1_(loader.rms_norm(path + ".norm1", config.hidden_size, kVisionEps)),
        qkv_(loader.linear(
            path + ".attn.qkv", 3 * config.hidden_size, config.hidden_size, nn::Bias::present
        )),
        proj_(loader.linear(
            path + ".attn.proj", config.hidden_size, config.hidden_size, nn::Bias::present
        )),
        mlp_(
            loader,
            path + ".norm2",
            path + ".mlp",
            config.hidden_size,
            config.intermediate_size,
            kVisionEps,
            nn::Bias::present
        ) {}

  mx::array operator()(
      const ops::Ops& ops,
      const mx::array& x,
      const ops::RopeTables& rope,
      std::span<const int> cu_seqlens
  ) const {
    const mx::array qkv = ops.norm_linears(x, norm1_, {&qkv_, 1})[0];
    const mx::array attended = ops.segment_attention(qkv, heads_, rope, cu_seqlens);
    return mlp_(ops, ops.linear_residual(attended, *proj_, x));
  }

 private:
  int heads_;
  ops::RmsNorm norm1_;
  ops::PackedMatrixPtr qkv_;
  ops::PackedMatrixPtr proj_;
  nn::SwigluMlp mlp_;
};

/// The tower: patches -> one row of the decoder's width for each merged unit.
class VisionTower {
 public:
  VisionTower(const nn::WeightLoader& loader, const VisionConfig& config)
      : config_(config),
        patch_embed_(loader.patch_embedding(
            "visual.patch_embed.proj",
            config.hidden_size,
            config.in_channels,
            config.temporal_patch_size,
            config.patch_size
        )),
        ln_q_(loader.rms_norm("visual.merger.ln_q", config.hidden_size, kVisionEps)),
        merger_fc1_(loader.linear(
            "visual.merger.mlp.0", config.merged_width(), config.merged_width(), nn::Bias::present
        )),
        merger_fc2_(loader.linear(
            "visual.merger.mlp.2", config.out_hidden_size, config.merged_width(), nn::Bias::present
        )) {
    for (int i = 0; i < config.depth; ++i) {
      blocks_.emplace_back(loader, fmt::format("visual.blocks.{}", i), config);
    }
  }

  mx::array operator()(const ops::Ops& ops, const Patches& patches) const {
    const nn::Windows windows =
        nn::window_partition(patches.grid_thw, config_.spatial_merge_size, config_.window_side());
    const std::vector<int> frames = nn::frame_segments(patches.grid_thw);
    const ops::RopeTables rope = windowed_rope(patches.grid_thw, windows);
    mx::array x = ops.linear(patch_rows(ops, patches), *patch_embed_);
    x = take_units(x, windows.order);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      x = blocks_[i](ops, x, rope, attends_fully(i) ? frames : windows.cu_seqlens);
      nn::assert_residual_dtype(x, ops.dtype(), static_cast<int>(i));
    }
    return merge(ops, x, windows.inverse);
  }

 private:
  static mx::array patch_rows(const ops::Ops& ops, const Patches& patches) {
    const mx::Shape shape = {static_cast<int>(patches.count), static_cast<int>(patches.width)};
    return mx::astype(mx::array(patches.values.begin(), shape), ops.dtype());
  }

  bool attends_fully(size_t block) const {
    return std::ranges::count(config_.fullatt_block_indexes, static_cast<int64_t>(block)) != 0;
  }

  int unit() const { return config_.spatial_merge_size * config_.spatial_merge_size; }

  /// Reorders merged units: rows of `unit()` patches each.
  mx::array take_units(const mx::array& x, const std::vector<int32_t>& order) const {
    const mx::array units = mx::reshape(x, {-1, unit(), x.shape(-1)});
    const mx::array index(order.begin(), {static_cast<int>(order.size())});
    return mx::reshape(mx::take(units, index, 0), x.shape());
  }

  ops::RopeTables windowed_rope(const nn::Grid& grid, const nn::Windows& windows) const {
    const nn::PatchPositions positions = nn::patch_positions(grid, config_.spatial_merge_size);
    nn::PatchPositions windowed;
    for (const int32_t from : windows.order) {
      for (int i = 0; i < unit(); ++i) {
        const size_t patch = static_cast<size_t>(from) * unit() + i;
        windowed.rows.push_back(positions.rows[patch]);
        windowed.columns.push_back(positions.columns[patch]);
      }
    }
    return nn::vision_rope(windowed.rows, windowed.columns, config_.head_dim());
  }

  mx::array merge(
      const ops::Ops& ops, const mx::array& x, const std::vector<int32_t>& inverse
  ) const {
    const mx::array units = mx::reshape(ops.rms_norm(x, ln_q_), {-1, config_.merged_width()});
    const mx::array merged = ops.linear(ops.linear_gelu(units, *merger_fc1_), *merger_fc2_);
    return mx::take(merged, mx::array(inverse.begin(), {static_cast<int>(inverse.size())}), 0);
  }

  VisionConfig config_;
  ops::PackedMatrixPtr patch_embed_;
  std::vector<VisionBlock> blocks_;
  ops::RmsNorm ln_q_;
  ops::PackedMatrixPtr merger_fc1_;
  ops::PackedMatrixPtr merger_fc2_;
};

struct DecoderLayer {
  nn::Attention self_attn;
  nn::SwigluMlp mlp;
};

class Qwen25VLModel : public Model {
 public:
  Qwen25VLModel(const ModelConfig& config, const nn::WeightLoader& loader)
      : ops_(loader.ops()),
        config_(read_text_config(config)),
        rope_(
            config_.rope.theta, config_.heads.head_dim, nn::chunked_axes(config_.rope.mrope_section)
        ),
        embed_tokens_(
            loader.embedding("model.embed_tokens", config_.vocab_size, config_.hidden_size)
        ),
        norm_(loader.rms_norm("model.norm", config_.hidden_size, config_.rms_norm_eps)),
        visual_(loader, read_vision_config(config)) {
    for (int i = 0; i < config_.num_hidden_layers; ++i) {
      layers_.push_back(load_layer(loader, fmt::format("model.layers.{}", i)));
    }
    lm_head_ =
        head_is_tied(loader.checkpoint(), config)
            ? embed_tokens_
            : loader.linear("lm_head", config_.vocab_size, config_.hidden_size, nn::Bias::absent);
  }

  nn::KVCache make_cache() const override {
    return {config_.num_hidden_layers, config_.heads, ops_.dtype()};
  }

  mx::array encode(const Patches& patches) const override { return visual_(ops_, patches); }

  mx::array forward(const Chunk& chunk, nn::KVCache& cache) const override {
    const ops::RopePlan rope = plan_rope(rope_, chunk);
    mx::array x = embed_chunk(ops_, *embed_tokens_, chunk);
    for (int i = 0; i < config_.num_hidden_layers; ++i) {
      const DecoderLayer& layer = layers_[static_cast<size_t>(i)];
      x = layer.self_attn(ops_, x, rope, cache.layer(i));
      x = layer.mlp(ops_, x);
      nn::assert_residual_dtype(x, ops_.dtype(), i);
    }
    return x;
  }

  mx::array logits(const mx::array& hidden) const override {
    return ops_.norm_linears(hidden, norm_, {&lm_head_, 1})[0];
  }

 private:
  DecoderLayer load_layer(const nn::WeightLoader& loader, const std::string& path) const {
    return {
        nn::Attention(
            loader,
            path,
            config_.hidden_size,
            config_.heads,
            config_.rms_norm_eps,
            nn::Bias::present
        ),
        nn::SwigluMlp(
            loader,
            path + ".post_attention_layernorm",
            path + ".mlp",
            config_.hidden_size,
            config_.intermediate_size,
            config_.rms_norm_eps,
            nn::Bias::absent
        )
    };
  }

  const ops::Ops& ops_;
  TextConfig config_;
  nn::Rope rope_;
  ops::PackedMatrixPtr embed_tokens_;
  std::vector<DecoderLayer> layers_;
  ops::RmsNorm norm_;
  ops::PackedMatrixPtr lm_head_;
  VisionTower visual_;
};

ModelShape shape(const ModelConfig& config) {
  const TextConfig text = read_text_config(config);
  const VisionConfig vision = read_vision_config(config);
  return {
      .layers = text.num_hidden_layers,
      .hidden_size = text.hidden_size,
      .intermediate_size = text.intermediate_size,
      .vocab_size = text.vocab_size,
      .max_position_embeddings = text.max_position_embeddings,
      .heads = text.heads,
      .vision_depth = vision.depth,
      .vision_hidden_size = vision.hidden_size,
      .vision_heads = vision.num_heads,
  };
}

std::optional<MediaRules> media_rules(const ModelConfig& config) {
  const JsonSource source = config.source();
  const VisionConfig vision = read_vision_config(config);
  const auto token_id = [&](std::string_view key) {
    return static_cast<int32_t>(get_int(config.root, key, source));
  };
  return MediaRules{
      .image_token_id = token_id("image_token_id"),
      .video_token_id = token_id("video_token_id"),
      .vision_start_token_id = token_id("vision_start_token_id"),
      .vision_end_token_id = token_id("vision_end_token_id"),
      .layout = {vision.patch_size, vision.spatial_merge_size, vision.temporal_patch_size},
      .image_bounds = {.min_pixels = 3136, .max_pixels = 12845056},
      .video_timing = VideoTiming::by_seconds,
      .tokens_per_second = get_number_or(
          config.vision, "tokens_per_second", 2, {config.source().where + " vision_config"}
      ),
  };
}

std::unique_ptr<const Model> load(const ModelConfig& config, const nn::WeightLoader& loader) {
  return std::make_unique<Qwen25VLModel>(config, loader);
}

}  // namespace

extern const Family qwen2_5_vl;
const Family qwen2_5_vl = {
    .model_type = "qwen2_5_vl", .shape = shape, .media_rules = media_rules, .load = load
};

}  // namespace whimbrel
