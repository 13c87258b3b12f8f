#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "media/image_processor.h"
#include "media/video_processor.h"
#include "models/family.h"
#include "text/tokenizer.h"
#include "weights/config.h"

namespace whimbrel {

/// Everything of a checkpoint that a request needs before it reaches the model: no weights. Const
/// after load; usable from several threads at once.
struct Frontend {
  ModelConfig config;
  const Family* family;
  ModelShape shape;
  std::optional<MediaRules> media;  // nothing for a text model or a checkpoint without tower
  Tokenizer tokenizer;
  std::optional<ImageProcessor> image_processor;  // exactly where there are media rules
  std::optional<VideoProcessor> video_processor;  // the same
  std::vector<int32_t> stop_ids;                  // of all files and the tokenizer
};

/// Reads a checkpoint folder's JSON files and the names of its tensors. Throws Error(Fault::model).
Frontend load_frontend(const std::filesystem::path& folder);

}  // namespace whimbrel
