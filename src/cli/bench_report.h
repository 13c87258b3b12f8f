#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "engine/bench.h"
#include "engine/bench_model.h"

namespace whimbrel {

enum class BenchFormat { md, csv, json, jsonl, benchstat };

/// Throws Error(Fault::usage) with the known names.
BenchFormat parse_bench_format(std::string_view name);

/// The object of `bench -o json` (docs/contract.md); `ops` is the name of the operations in use.
/// Each row repeats the build and what it was measured on, so that it can stand alone.
Json bench_json(
    const BenchModel& model,
    const BenchOptions& options,
    const BenchMeasurement& measured,
    const std::vector<BenchRow>& rows,
    std::string_view ops
);

/// That object in one of the formats, with a line break at its end.
std::string bench_text(const Json& bench, BenchFormat format);

}  // namespace whimbrel
