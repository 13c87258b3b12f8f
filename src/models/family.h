#pragma once

#include <mlx/array.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "media/image_processor.h"
#include "media/video_processor.h"
#include "models/model.h"
#include "models/prompt.h"
#include "nn/loader.h"
#include "text/boxes.h"
#include "weights/config.h"

namespace whimbrel {

/// Sizes of a vision tower.
struct TowerShape {
  int depth;
  int global_blocks;  // those in which a patch sees its whole frame, not a window of it
  int hidden_size;
  int intermediate_size;
  int heads;
};

/// Sizes that people and the memory estimate need; known from config.json alone.
struct ModelShape {
  int layers;
  int hidden_size;
  int intermediate_size;         // of dense layers
  int active_intermediate_size;  // columns that a token goes through: the dense, or its experts'
  int vocab_size;
  int max_position_embeddings;
  ops::HeadShape heads;
  std::optional<TowerShape> vision;  // nothing for a text model
};

/// How a family places the frames of a video in time.
enum class VideoTiming {
  by_frame,     // the time axis counts patches of frames
  by_seconds,   // the time axis advances by tokens_per_second, rounded down
  timestamped,  // each patch of frames is a block of its own behind its time in words
};

/// Which numbers a family's models were taught to give for the corners of a box in a picture.
enum class BoxConvention {
  unknown,
  thousandths,     // of the picture's width and height
  resized_pixels,  // of the picture as it was resized for the tower
};

/// How a family with a vision tower lays out media in a prompt. Data, so that prompts are made
/// without a model.
struct MediaRules {
  int32_t image_token_id;
  int32_t video_token_id;
  int32_t vision_start_token_id;
  int32_t vision_end_token_id;
  PatchLayout layout;        // what the tower was built for
  PixelBounds image_bounds;  // where the checkpoint states none
  VideoTiming video_timing;
  double tokens_per_second = 1;  // of VideoTiming::by_seconds; over 0, at most 1000
  VideoRules video = {};         // which frames are looked at, and their size
  BoxConvention boxes = BoxConvention::unknown;
  BoxNotation box_notation = BoxNotation::json;
};

/// One model family: everything that differs from another one. A family is one file in this folder,
/// named by its model_type, and one line in registry.cpp.
struct Family {
  std::string_view model_type;  // of config.json

  /// All throw Error(Fault::model) where config.json or a tensor doesn't fit.
  ModelShape (*shape)(const ModelConfig& config);
  /// Nothing for a text model.
  std::optional<MediaRules> (*media_rules)(const ModelConfig& config);
  Model (*load)(const ModelConfig& config, const nn::WeightLoader& loader);
};

/// All families, in the order of registry.cpp.
std::span<const Family* const> families();

/// Throws Error(Fault::model) with the list of known ones for an unknown model_type.
const Family& find_family(std::string_view model_type);

}  // namespace whimbrel
