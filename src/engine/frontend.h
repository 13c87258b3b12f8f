#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "media/image_processor.h"
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
  PromptRules rules;
  Tokenizer tokenizer;
  ImageProcessor image_processor;
  std::vector<int32_t> stop_ids;  // of all files and the tokenizer
};

/// Reads a checkpoint folder's JSON files. Throws Error(Fault::model).
Frontend load_frontend(const std::filesystem::path& folder);

}  // namespace whimbrel
