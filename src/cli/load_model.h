#pragma once

#include "engine/engine.h"
#include "models/prompt.h"

namespace whimbrel {

struct LoadModelOptions {
  bool force = false;    // load though memory looks too small
  bool progress = true;  // a bar on stderr
  /// Whether to say on stderr how long the prompt will take on a CPU, where that is long.
  bool announce_prefill = false;
  ops::OpsOptions ops = {};
};

/// Loads the weights with the operations that WHIMBREL_OPS asks for, once the memory estimate for
/// `prompt` and `use` (estimate_memory) fits; says the checkpoint's warnings on stderr. Throws as
/// Engine and require_memory.
Engine load_model(
    const Frontend& frontend,
    const Prompt& prompt,
    const GenerateOptions& use,
    const LoadModelOptions& options
);

}  // namespace whimbrel
