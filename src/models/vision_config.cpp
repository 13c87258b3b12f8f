#include "models/vision_config.h"

#include "base/error.h"
#include "models/config_keys.h"

namespace whimbrel {

namespace {

void require_fitting_widths(const nn::VisionConfig& vision, const ModelConfig& config) {
  const JsonSource source = vision_source(config);
  if (vision.hidden_size % (4 * vision.num_heads) != 0) {
    throw Error(
        Fault::model,
        source.where,
        "got a width of {} and num_heads {}, expected heads of a width that 4 divides",
        vision.hidden_size,
        vision.num_heads
    );
  }
  const int hidden_size = get_size(config.text, "hidden_size", config.source());
  if (vision.out_hidden_size != hidden_size) {
    throw Error(
        Fault::model,
        source.where,
        "got features of width {}, expected the text decoder's hidden_size of {}",
        vision.out_hidden_size,
        hidden_size
    );
  }
}

}  // namespace

JsonSource vision_source(const ModelConfig& config) {
  return {config.source().where + " vision_config"};
}

nn::VisionConfig read_vision_config(
    const ModelConfig& config, const VisionWidths& widths, std::string_view activation
) {
  const JsonSource source = vision_source(config);
  const Json& vision = config.vision;
  require_activation(vision, activation, source);
  const std::string_view channels = has_value(vision, "in_channels") ? "in_channels" : "in_chans";
  nn::VisionConfig parsed{
      .depth = get_depth(vision, "depth", source),
      .hidden_size = widths.hidden_size,
      .intermediate_size = widths.intermediate_size,
      .num_heads = get_size(vision, "num_heads", source),
      .out_hidden_size = widths.out_hidden_size,
      .spatial_merge_size = get_size(vision, "spatial_merge_size", source),
      .patch = {
          .channels = static_cast<int>(get_int_or(vision, channels, 3, source)),
          .temporal_patch_size = get_size(vision, "temporal_patch_size", source),
          .patch_size = get_size(vision, "patch_size", source)
      },
  };
  require_fitting_widths(parsed, config);
  return parsed;
}

MediaRules read_media_rules(const ModelConfig& config, const nn::VisionConfig& vision) {
  const auto token_id = [&config](std::string_view key) {
    return static_cast<int32_t>(get_int(config.root, key, config.source(), 0));
  };
  return {
      .image_token_id = token_id("image_token_id"),
      .video_token_id = token_id("video_token_id"),
      .vision_start_token_id = token_id("vision_start_token_id"),
      .vision_end_token_id = token_id("vision_end_token_id"),
      .layout =
          {vision.patch.patch_size, vision.spatial_merge_size, vision.patch.temporal_patch_size},
      .image_bounds = {},
      .video_timing = VideoTiming::by_frame,
  };
}

}  // namespace whimbrel
