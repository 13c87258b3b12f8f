#include "cli/load_model.h"

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/ops_choice.h"
#include "cli/terminal.h"
#include "engine/memory_estimate.h"

namespace whimbrel {

namespace {

Engine read_weights(
    const Frontend& frontend,
    Checkpoint& checkpoint,
    std::unique_ptr<const ops::Ops> ops,
    bool progress
) {
  ProgressBar bar("loading", progress);
  return Engine(
      frontend,
      checkpoint,
      std::move(ops),
      {.on_bytes = [&bar](uint64_t done, uint64_t total) { bar.update(done, total); },
       .cancelled = interrupted}
  );
}

}  // namespace

Engine load_model(
    const Frontend& frontend,
    const Prompt& prompt,
    const GenerateOptions& use,
    const LoadModelOptions& options
) {
  Checkpoint checkpoint(frontend.config);
  const CheckpointSummary summary = checkpoint.summary();
  std::unique_ptr<const ops::Ops> ops = choose_ops(requested_ops(), summary);
  if (!options.force) {
    require_memory(estimate_memory(frontend.shape, summary, *ops, prompt, use));
  }
  Engine engine = read_weights(frontend, checkpoint, std::move(ops), options.progress);
  for (const std::string& warning : checkpoint.warnings()) {
    write_stderr(fmt::format("warning: {}\n", warning));
  }
  return engine;
}

}  // namespace whimbrel
