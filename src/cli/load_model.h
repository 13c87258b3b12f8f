#pragma once

#include <mlx/dtype.h>

#include <string>

#include "engine/engine.h"
#include "models/prompt.h"

namespace whimbrel {

/// A model in memory, and what it computes with.
struct LoadedModel {
  Engine engine;
  std::string ops;  // the operations' name
  mx::Dtype dtype;  // of activations
};

struct LoadModelOptions {
  bool force = false;    // load though memory looks too small
  bool progress = true;  // a bar on stderr
};

/// Loads the weights with the operations that WHIMBREL_OPS asks for, once the memory estimate for
/// `prompt` and `use` (estimate_memory) fits; says the checkpoint's warnings on stderr. Throws as
/// Engine and require_memory.
LoadedModel load_model(
    const Frontend& frontend,
    const Prompt& prompt,
    const GenerateOptions& use,
    const LoadModelOptions& options
);

}  // namespace whimbrel
