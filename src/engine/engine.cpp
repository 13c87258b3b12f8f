#include "engine/engine.h"

#include "base/error.h"
#include "nn/loader.h"

namespace whimbrel {

namespace {

/// Adds up loaded bytes and passes them on.
class LoadProgress {
 public:
  LoadProgress(const LoadEvents& events, uint64_t total) : events_(events), total_(total) {}

  void operator()(uint64_t bytes) {
    done_ += bytes;
    if (events_.cancelled && events_.cancelled()) {
      throw Error(Fault::interrupted, "load", "interrupted");
    }
    if (events_.on_bytes) {
      events_.on_bytes(done_, total_);
    }
  }

 private:
  const LoadEvents& events_;
  uint64_t total_;
  uint64_t done_ = 0;
};

}  // namespace

Engine::Engine(
    const Frontend& frontend,
    Checkpoint& checkpoint,
    std::unique_ptr<const ops::Ops> ops,
    const LoadEvents& events
)
    : Engine(frontend.config, checkpoint, std::move(ops), events) {}

Engine::Engine(
    const ModelConfig& config,
    Checkpoint& checkpoint,
    std::unique_ptr<const ops::Ops> ops,
    const LoadEvents& events
)
    : ops_(std::move(ops)) {
  const nn::WeightLoader loader(checkpoint, *ops_, LoadProgress(events, checkpoint.total_bytes()));
  model_.emplace(find_family(config.model_type).load(config, loader));
  checkpoint.require_all_taken();
}

std::unique_ptr<const ops::Ops> choose_ops(
    std::string_view requested, const CheckpointSummary& checkpoint, const ops::OpsOptions& options
) {
  for (const CheckpointSummary::OfDtype& stored : checkpoint.dtypes) {
    if (stored.dtype == StoredDtype::bf16) {
      return ops::make_ops(requested, mx::bfloat16, options);
    }
    if (stored.dtype == StoredDtype::f16) {
      return ops::make_ops(requested, mx::float16, options);
    }
  }
  return ops::make_ops(requested, mx::float32, options);
}

}  // namespace whimbrel
