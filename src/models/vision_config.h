#pragma once

#include <string_view>

#include "models/family.h"
#include "nn/vision.h"
#include "weights/config.h"

namespace whimbrel {

/// The widths of a tower, which families state under different keys.
struct VisionWidths {
  int hidden_size;
  int intermediate_size;
  int out_hidden_size;
};

/// For errors about keys of vision_config.
JsonSource vision_source(const ModelConfig& config);

/// Reads vision_config. Throws Error(Fault::model) that names the key: a missing one, another
/// activation, heads that don't divide, features that are no rows of the decoder.
nn::VisionConfig read_vision_config(
    const ModelConfig& config, const VisionWidths& widths, std::string_view activation
);

/// The token ids and sizes of media rules; bounds and timing are the family's.
MediaRules read_media_rules(const ModelConfig& config, const nn::VisionConfig& vision);

}  // namespace whimbrel
