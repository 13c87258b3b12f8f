#include "engine/bench.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/memory.h"
#include "engine/bench_session.h"

namespace whimbrel {

namespace {

void run_once(BenchRun& run, BenchSamples& samples) {
  reset_peak_memory();
  samples.ms.push_back(run.repeat());
  samples.peak_memory = std::max(samples.peak_memory, peak_memory());
}

}  // namespace

BenchMeasurement measure_cells(
    const Model& model,
    const BenchOptions& options,
    const std::vector<BenchCell>& cells,
    std::optional<Prompt> picture,
    ops::BandwidthProbe probe,
    const BenchEvents& events
) {
  const int total = static_cast<int>(cells.size()) * (options.repetitions + 1);
  int done = 0;
  const auto next = [&] {
    if (events.cancelled && events.cancelled()) {
      throw Error(Fault::interrupted, "bench", "interrupted");
    }
    if (events.on_cell) {
      events.on_cell(done, total);
    }
    ++done;
  };
  BenchMeasurement measured;
  measured.probe.reads.push_back(probe.measure());
  measured.probe.peaks.push_back(ops::measure_arithmetic());
  BenchSession session(model, options, std::move(picture));
  std::vector<std::unique_ptr<BenchRun>> runs;
  for (const BenchCell& cell : cells) {
    next();
    runs.push_back(session.prepare(cell));
    measured.samples.push_back({.cell = cell, .ms = {}});
  }
  for (int turn = 0; turn < options.repetitions; ++turn) {
    for (size_t i = 0; i < runs.size(); ++i) {
      next();
      run_once(*runs[i], measured.samples[i]);
    }
    measured.probe.reads.push_back(probe.measure());
  }
  measured.probe.peaks.push_back(ops::measure_arithmetic());
  return measured;
}

}  // namespace whimbrel
