#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/frontend.h"
#include "generate/generate.h"
#include "ops/ops.h"
#include "weights/checkpoint.h"

namespace whimbrel {

/// What a caller may listen to while weights are loaded. Both may be empty.
struct LoadEvents {
  std::function<void(uint64_t done, uint64_t total)> on_bytes;
  std::function<bool()> cancelled;
};

/// A loaded model and the operations that it computes with.
class Engine {
 public:
  /// Reads all weights. Throws Error(Fault::model) naming a tensor that is missing, unused or
  /// misshapen, Error(Fault::interrupted) when cancelled.
  Engine(
      const Frontend& frontend,
      Checkpoint& checkpoint,
      std::unique_ptr<const ops::Ops> ops,
      const LoadEvents& events
  );

  /// The same without tokenizer and processors.
  Engine(
      const ModelConfig& config,
      Checkpoint& checkpoint,
      std::unique_ptr<const ops::Ops> ops,
      const LoadEvents& events
  );

  const Model& model() const { return *model_; }

  const ops::Ops& ops() const { return *ops_; }

  /// Of the operations: `reference`, `cpu` or `cuda`.
  std::string_view ops_name() const { return ops_->name(); }

  /// What activations are held in.
  mx::Dtype dtype() const { return ops_->dtype(); }

 private:
  std::unique_ptr<const ops::Ops> ops_;
  std::optional<Model> model_;
};

/// The operations for a checkpoint on this machine (`requested` as in WHIMBREL_OPS). Throws as
/// ops::make_ops does.
std::unique_ptr<const ops::Ops> choose_ops(
    std::string_view requested,
    const CheckpointSummary& checkpoint,
    const ops::OpsOptions& options = {}
);

}  // namespace whimbrel
