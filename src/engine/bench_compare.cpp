#include "engine/bench_compare.h"

#include <algorithm>

namespace whimbrel {

std::string_view verdict_text(BenchVerdict verdict) {
  switch (verdict) {
    case BenchVerdict::faster:
      return "faster";
    case BenchVerdict::slower:
      return "slower";
    case BenchVerdict::no_difference:
      break;
  }
  return "none shown";
}

CellComparison compare_cell(
    std::span<const double> a, std::span<const double> b, std::span<const double> same
) {
  const Statistics itself = statistics(same);
  CellComparison cell{.a = statistics(a), .b = statistics(b)};
  cell.ratio = cell.b.median / cell.a.median;
  cell.resolution = itself.max / itself.min - 1;
  const double difference = std::max(cell.ratio, 1 / cell.ratio) - 1;
  if (ranges_part(cell.a, cell.b) && difference > cell.resolution) {
    cell.verdict = cell.ratio < 1 ? BenchVerdict::faster : BenchVerdict::slower;
  }
  return cell;
}

}  // namespace whimbrel
