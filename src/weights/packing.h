#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "weights/quantization.h"
#include "weights/safetensors.h"

namespace whimbrel {

/// The three tensors of a packed matrix: uint32 [rows, columns*bits/32], and twice
/// [rows, columns/group_size] in one dtype of bf16, f16, f32. Those of stacked matrices have
/// leading axes before that.
struct PackedTensors {
  const TensorInfo& weight;
  const TensorInfo& scales;
  const TensorInfo& biases;
};

/// How a packed matrix is packed.
struct Packing {
  int bits;
  int group_size;
};

/// Bits and group size by the shapes of the tensors. Throws Error(Fault::model) naming `where` and
/// the tensor where shapes or dtypes don't fit a matrix of [leading..., rows, columns], or where
/// `stated`, which is what config.json says, differs.
Packing check_packing(
    const PackedTensors& tensors,
    const std::vector<int64_t>& leading,
    int64_t rows,
    int64_t columns,
    const std::optional<QuantizationConfig>& stated,
    std::string_view where
);

/// Throws Error(Fault::model) unless the tensor is bf16, f16 or f32.
void require_float(const TensorInfo& tensor, std::string_view where);

}  // namespace whimbrel
