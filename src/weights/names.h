#pragma once

#include <string>
#include <string_view>

namespace whimbrel {

/// The one name that our code uses for a tensor or a module, whatever a checkpoint calls it:
///   text    model.X     from model.X, model.language_model.X, language_model.model.X
///   vision  visual.X    from visual.X, model.visual.X, vision_tower.X
///   head    lm_head.X   from lm_head.X, language_model.lm_head.X
///   experts mlp.experts.X  from mlp.experts.X, mlp.switch_mlp.X
/// Any other name stays as it is. Idempotent.
std::string canonical_name(std::string_view checkpoint_name);

/// True for tensors that are computed and never read: rotary frequencies saved by old versions.
bool is_ignored_tensor(std::string_view canonical_name);

}  // namespace whimbrel
