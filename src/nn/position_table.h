#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "nn/vision.h"
#include "ops/ops.h"

namespace whimbrel::nn {

/// For each patch the four entries of a square table of learned positions around it, and their
/// shares. Patches stand in a tower's order (patch_positions).
struct TableCorners {
  std::array<std::vector<int32_t>, 4> rows;  // row * side + column
  std::array<std::vector<float>, 4> weights;
};

/// The corners for a grid, the table's outermost entries on the grid's outermost patches
/// (align-corners; HF fast_pos_embed_interpolate). In float32, as the models were trained.
TableCorners table_corners(const Grid& grid, int merge_size, int side);

/// Learned positions of a grid's patches from a table [side * side, width] -> [patches, width]:
/// the four corners' entries times their shares, summed in the activation dtype.
mx::array interpolate_positions(
    const ops::Ops& ops, const ops::PackedMatrix& table, const TableCorners& corners
);

}  // namespace whimbrel::nn
