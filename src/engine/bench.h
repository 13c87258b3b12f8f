#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/bench_plan.h"
#include "engine/bench_rows.h"
#include "models/model.h"
#include "models/prompt.h"

namespace whimbrel {

/// What a caller may listen to while a bench runs. Both may be empty.
struct BenchEvents {
  std::function<void(int done, int total)> on_cell;  // repetitions of cells, all of them together
  std::function<bool()> cancelled;                   // asked before each
};

struct BenchMeasurement {
  BenchProbe probe;
  std::vector<BenchSamples> samples;
};

/// Measures the cells: all are made ready and warmed up, then take turns, one repetition each, so
/// that a machine that changes its pace changes it for all. The probes run before, behind each turn
/// and, of arithmetic, at the end. Throws Error(Fault::interrupted) when cancelled.
BenchMeasurement measure_cells(
    const Model& model,
    const BenchOptions& options,
    const std::vector<BenchCell>& cells,
    std::optional<Prompt> picture,
    ops::BandwidthProbe probe,
    const BenchEvents& events
);

}  // namespace whimbrel
