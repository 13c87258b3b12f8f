#include "models/deepstack_family.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "models/config_keys.h"

namespace whimbrel {

namespace {

int table_side(const ModelConfig& config) {
  const JsonSource source = vision_source(config);
  const int entries = get_size(config.vision, "num_position_embeddings", source);
  const int side = static_cast<int>(std::lround(std::sqrt(entries)));
  if (side * side != entries) {
    throw Error(
        Fault::model,
        source.where,
        "got num_position_embeddings {}, expected the square of a whole number",
        entries
    );
  }
  return side;
}

std::vector<int> deepstack_indexes(const ModelConfig& config, int depth) {
  const JsonSource source = vision_source(config);
  const std::vector<int64_t> stated = get_ints(config.vision, "deepstack_visual_indexes", source);
  const int layers = get_depth(config.text, "num_hidden_layers", config.source());
  const bool ascending = std::ranges::adjacent_find(stated, std::greater_equal<>()) == stated.end();
  if (!ascending || (!stated.empty() && stated.back() >= depth) || std::ssize(stated) > layers) {
    throw Error(
        Fault::model,
        source.where,
        "got deepstack_visual_indexes [{}], expected ascending blocks below the depth of {}, at "
        "most one for each of the decoder's {} layers",
        fmt::join(stated, ", "),
        depth,
        layers
    );
  }
  return {stated.begin(), stated.end()};
}

}  // namespace

nn::DecoderConfig deepstack_decoder_config(const ModelConfig& config) {
  nn::DecoderConfig decoder = read_text_config(config);
  decoder.attention.head_norms = true;
  require_interleaved(config, true);
  decoder.rope_axes = nn::interleaved_axes(read_mrope_section(config, {24, 20, 20}));
  return decoder;
}

nn::DeepstackTowerConfig read_deepstack_config(const ModelConfig& config) {
  const JsonSource source = vision_source(config);
  const Json& vision = config.vision;
  const VisionWidths widths{
      .hidden_size = get_size(vision, "hidden_size", source),
      .intermediate_size = get_size(vision, "intermediate_size", source),
      .out_hidden_size = get_size(vision, "out_hidden_size", source),
  };
  const nn::VisionConfig parsed = read_vision_config(config, widths, "gelu_pytorch_tanh");
  return {parsed, table_side(config), deepstack_indexes(config, parsed.depth)};
}

nn::VisionConfig deepstack_vision_config(const ModelConfig& config) {
  return read_deepstack_config(config).vision;
}

std::optional<MediaRules> deepstack_media_rules(const ModelConfig& config) {
  MediaRules rules = read_media_rules(config, deepstack_vision_config(config));
  rules.image_bounds = {.min_pixels = 65536, .max_pixels = 16777216};
  rules.video_timing = VideoTiming::timestamped;
  rules.video = {
      .frame_count = FrameCount::any,
      .sizing = VideoSizing::per_video,
      .bounds = {.min_pixels = 4096, .max_pixels = 25165824},
  };
  rules.boxes = BoxConvention::thousandths;
  return rules;
}

Model load_deepstack_model(
    const ModelConfig& config, const nn::DecoderConfig& decoder, const nn::WeightLoader& loader
) {
  return load_vision_model(config, decoder, loader, [&] {
    return nn::DeepstackTower(loader, read_deepstack_config(config));
  });
}

}  // namespace whimbrel
