#include "nn/vision.h"

#include <mlx/mlx.h>

#include <algorithm>

namespace whimbrel::nn {

namespace {

struct Range {
  int begin;
  int end;
};

/// Merged units of one window, row by row, as places in the original order.
std::vector<int32_t> window_units(int frame, Range rows, Range columns, int height, int width) {
  std::vector<int32_t> units;
  for (int row = rows.begin; row < rows.end; ++row) {
    for (int column = columns.begin; column < columns.end; ++column) {
      units.push_back((frame * height + row) * width + column);
    }
  }
  return units;
}

std::vector<int32_t> invert(const std::vector<int32_t>& order) {
  std::vector<int32_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    inverse[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  }
  return inverse;
}

}  // namespace

mx::array patch_rows(const ops::Ops& ops, const Patches& patches) {
  const mx::Shape shape = {static_cast<int>(patches.count), static_cast<int>(patches.width)};
  return mx::astype(mx::array(patches.values.begin(), shape), ops.dtype());
}

PatchPositions patch_positions(const Grid& grid, int merge_size) {
  const auto [frames, height, width] = grid;
  PatchPositions positions;
  for (int frame = 0; frame < frames; ++frame) {
    for (int row = 0; row < height; row += merge_size) {
      for (int column = 0; column < width; column += merge_size) {
        for (int i = 0; i < merge_size * merge_size; ++i) {
          positions.rows.push_back(row + i / merge_size);
          positions.columns.push_back(column + i % merge_size);
        }
      }
    }
  }
  return positions;
}

std::vector<int> frame_segments(const Grid& grid) {
  std::vector<int> cu_seqlens = {0};
  for (int frame = 0; frame < grid[0]; ++frame) {
    cu_seqlens.push_back(cu_seqlens.back() + grid[1] * grid[2]);
  }
  return cu_seqlens;
}

std::vector<ops::RowRange> query_pieces(std::span<const int> cu_seqlens, int64_t most_pairs) {
  std::vector<ops::RowRange> pieces;
  int begin = 0;
  int64_t pairs = 0;
  for (size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const int64_t keys = cu_seqlens[i + 1] - cu_seqlens[i];
    for (int row = cu_seqlens[i]; row < cu_seqlens[i + 1];) {
      const int next = std::min(row + ops::kQueryStep, cu_seqlens[i + 1]);
      const int64_t added = (next - row) * keys;
      if (pairs + added > most_pairs && row > begin) {
        pieces.push_back({begin, row - begin});
        begin = row;
        pairs = 0;
      }
      pairs += added;
      row = next;
    }
  }
  pieces.push_back({begin, cu_seqlens.back() - begin});
  return pieces;
}

Windows window_partition(const Grid& grid, int merge_size, int side) {
  const int height = grid[1] / merge_size;
  const int width = grid[2] / merge_size;
  Windows windows;
  windows.cu_seqlens = {0};
  for (int frame = 0; frame < grid[0]; ++frame) {
    for (int top = 0; top < height; top += side) {
      for (int left = 0; left < width; left += side) {
        const std::vector<int32_t> units = window_units(
            frame,
            {top, std::min(top + side, height)},
            {left, std::min(left + side, width)},
            height,
            width
        );
        windows.order.insert(windows.order.end(), units.begin(), units.end());
        const int patches = static_cast<int>(units.size()) * merge_size * merge_size;
        windows.cu_seqlens.push_back(windows.cu_seqlens.back() + patches);
      }
    }
  }
  windows.inverse = invert(windows.order);
  return windows;
}

}  // namespace whimbrel::nn
