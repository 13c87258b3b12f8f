#pragma once

namespace whimbrel::ops {

/// No tile of a CPU's kernels crosses a multiple of it within a segment.
constexpr int kQueryStep = 512;

/// Rows [first, first + count).
struct RowRange {
  int first;
  int count;
};

}  // namespace whimbrel::ops
