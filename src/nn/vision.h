#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "media/patchify.h"
#include "nn/loader.h"
#include "ops/ops.h"

namespace whimbrel::nn {

constexpr double kVisionEps = 1e-6;  // of a tower's norms; not configurable in any file

/// Sizes that all families' vision towers have.
struct VisionConfig {
  int depth;
  int hidden_size;
  int intermediate_size;
  int num_heads;
  int out_hidden_size;
  int spatial_merge_size;
  PatchShape patch;

  int head_dim() const { return hidden_size / num_heads; }
  int merged_width() const { return hidden_size * spatial_merge_size * spatial_merge_size; }
};

/// A tower's input rows [patches, width] in the activation dtype.
mx::array patch_rows(const ops::Ops& ops, const Patches& patches);

/// A picture's patches: frames, rows, columns. Rows and columns are multiples of the merge size.
using Grid = std::array<int, 3>;

/// Row and column of each patch in the order a tower sees them: merge blocks row by row, inside a
/// block row by row, once a frame.
struct PatchPositions {
  std::vector<int32_t> rows;
  std::vector<int32_t> columns;
};
PatchPositions patch_positions(const Grid& grid, int merge_size);

/// Borders of the segments that full attention works in: one a frame. {0, h*w, 2*h*w, ...}
std::vector<int> frame_segments(const Grid& grid);

/// Cuts the rows of a tower where attention would take long, so that others need not wait for all
/// of it: pieces of at most so many pairs of a query and a key, but ops::kQueryStep rows of a
/// segment at least.
std::vector<ops::RowRange> query_pieces(std::span<const int> cu_seqlens, int64_t most_pairs);

/// Partition of a picture into square windows (HF get_window_index).
struct Windows {
  /// For each merged unit of the windowed order, its place in the original order.
  std::vector<int32_t> order;
  /// For each merged unit of the original order, its place in the windowed order.
  std::vector<int32_t> inverse;
  /// Borders of the windows, in patches, from 0.
  std::vector<int> cu_seqlens;
};

/// `side` is a window's side in merged units; windows at the right and bottom edge may be smaller.
Windows window_partition(const Grid& grid, int merge_size, int side);

}  // namespace whimbrel::nn
