#pragma once

#include "nn/deepstack_tower.h"
#include "weights/config.h"

namespace whimbrel {

/// Reads vision_config of a tower with a table of positions and deepstack blocks. Throws
/// Error(Fault::model) that names the key: a table that isn't square, deepstack blocks that the
/// tower doesn't have or that are more than the decoder's layers.
nn::DeepstackTowerConfig read_deepstack_config(const ModelConfig& config);

}  // namespace whimbrel
