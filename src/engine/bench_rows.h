#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/bench_plan.h"
#include "engine/bench_work.h"
#include "ops/cpu/probe.h"

namespace whimbrel {

/// What was measured of one cell.
struct BenchSamples {
  BenchCell cell;
  std::vector<std::vector<double>> ms;       // of each repetition, as BenchRun gives them
  std::optional<uint64_t> peak_memory = {};  // of the process while it ran, bytes
};

/// What the machine can do, measured in the same run.
struct BenchProbe {
  std::vector<ops::ReadBandwidth> reads;                // before, between, after
  std::vector<std::vector<ops::ArithmeticPeak>> peaks;  // before, after

  /// The median of all reads, GB/s.
  double read_gb_s() const;

  /// The medians of each kind.
  std::vector<ops::ArithmeticPeak> median_peaks() const;
};

/// A cell's result. Milliseconds are of a step of all rows for a decode, of the whole otherwise;
/// nothing where a figure has no meaning.
struct BenchRow {
  BenchCell cell;
  std::string test;
  std::vector<double> samples;  // ms of each step or run, repetition by repetition
  int repetitions = 0;
  double ms = 0;  // median
  double ms_min = 0;
  double ms_max = 0;
  double ms_mean = 0;
  double ms_stddev = 0;
  std::optional<double> tok_s = {};       // of all rows, by the median
  std::optional<double> tok_s_mean = {};  // over repetitions
  std::optional<double> tok_s_stddev = {};
  std::optional<double> bytes_per_token = {};     // that a step reads, shared by its rows
  std::optional<double> bandwidth_fraction = {};  // bytes a second over the run's bandwidth
  std::optional<double> peak_fraction = {};       // over the fastest floating-point kind
  std::optional<double> delta_ms = {};        // from the smallest depth of the same test and rows
  std::optional<double> delta_floor_ms = {};  // what reading the longer cache takes at least
  std::optional<uint64_t> peak_memory = {};   // bytes
};

/// All rows in the order of the cells. `patches` is the picture's number of patches.
std::vector<BenchRow> bench_rows(
    const std::vector<BenchSamples>& samples,
    const ModelWork& work,
    const BenchProbe& probe,
    int64_t patches
);

}  // namespace whimbrel
