#include "engine/bench_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace whimbrel {

Statistics statistics(std::span<const double> values) {
  if (values.empty()) {
    return {};
  }
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const size_t count = sorted.size();
  const double mean =
      std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(count);
  double squares = 0;
  for (const double value : sorted) {
    squares += (value - mean) * (value - mean);
  }
  return {
      .median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2,
      .mean = mean,
      .stddev = count > 1 ? std::sqrt(squares / static_cast<double>(count - 1)) : 0,
      .min = sorted.front(),
      .max = sorted.back(),
  };
}

bool ranges_part(const Statistics& a, const Statistics& b) {
  return a.max < b.min || b.max < a.min;
}

}  // namespace whimbrel
