#pragma once

#include <span>

namespace whimbrel {

/// What a set of measurements says; zeros for an empty one.
struct Statistics {
  double median = 0;
  double mean = 0;
  double stddev = 0;  // of the sample (divided by n - 1); 0 for a single one
  double min = 0;
  double max = 0;
};

Statistics statistics(std::span<const double> values);

/// Whether every value of one set is smaller than every value of the other.
bool ranges_part(const Statistics& a, const Statistics& b);

}  // namespace whimbrel
