#pragma once

#include <span>
#include <string_view>

#include "engine/bench_statistics.h"

namespace whimbrel {

enum class BenchVerdict { no_difference, faster, slower };

/// `none shown`, `faster` or `slower`.
std::string_view verdict_text(BenchVerdict verdict);

/// A cell as two builds measured it, a value (ms) each process.
struct CellComparison {
  Statistics a;
  Statistics b;
  double ratio = 1;       // median of b over median of a
  double resolution = 0;  // spread of a against itself: largest over smallest value, less 1
  BenchVerdict verdict = BenchVerdict::no_difference;  // of b against a
};

/// `same` are values of a against itself. There is a verdict only where every value of one build is
/// smaller than every value of the other, and the medians differ by more than the resolution.
CellComparison compare_cell(
    std::span<const double> a, std::span<const double> b, std::span<const double> same
);

}  // namespace whimbrel
