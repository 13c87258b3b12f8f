#pragma once

#include <cstdint>
#include <string>

#include "weights/checkpoint.h"

namespace whimbrel {

/// Sizes of one mixture-of-experts layer.
struct ExpertsShape {
  int64_t num_experts;
  int64_t hidden_size;
  int64_t intermediate_size;  // of one expert
};

/// The matrices of a layer's experts, stacked: gate and up [experts, intermediate, hidden], down
/// [experts, hidden, intermediate].
struct StoredExperts {
  StoredMatrix gate_proj;
  StoredMatrix up_proj;
  StoredMatrix down_proj;
};

/// Takes the experts under `module` (`model.layers.0.mlp.experts`) in any of the forms that files
/// hold: stacked (`gate_proj.weight`, MLX), gate and up in one tensor (`gate_up_proj`, the hub's
/// Qwen3-VL-MoE, inputs or outputs first), one matrix an expert (`0.gate_proj.weight`, the hub's
/// text models). Throws Error(Fault::model) as Checkpoint::take does.
StoredExperts take_experts(
    Checkpoint& checkpoint, const std::string& module, const ExpertsShape& shape
);

}  // namespace whimbrel
