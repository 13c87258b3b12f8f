#include "cli/load_model.h"

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/ops_choice.h"
#include "cli/terminal.h"
#include "engine/memory_estimate.h"
#include "engine/prefill_estimate.h"
#include "ops/device.h"

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

/// A GPU is fast enough, and its first product slow enough, to say nothing.
void announce_prefill(
    const Frontend& frontend,
    const Checkpoint& checkpoint,
    const ops::Ops& ops,
    const Prompt& prompt
) {
  const PrefillWork work = prefill_work(frontend.shape, checkpoint, prompt);
  if (ops::backend_name() != "cpu" || !may_take_long(work)) {
    return;
  }
  const double seconds = prefill_seconds(work, measure_prefill_rates(ops, checkpoint));
  if (seconds > kLongPrefill) {
    write_stderr(long_prefill_text(work, seconds) + "\n");
  }
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
  std::unique_ptr<const ops::Ops> ops = choose_ops(requested_ops(), summary, options.ops);
  if (!options.force) {
    require_memory(estimate_memory(frontend.shape, summary, *ops, prompt, use));
  }
  Engine engine = read_weights(frontend, checkpoint, std::move(ops), options.progress);
  for (const std::string& warning : checkpoint.warnings()) {
    write_stderr(fmt::format("warning: {}\n", warning));
  }
  if (options.announce_prefill) {
    announce_prefill(frontend, checkpoint, engine.ops(), prompt);
  }
  return engine;
}

}  // namespace whimbrel
