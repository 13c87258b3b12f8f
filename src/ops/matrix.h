#pragma once

#include <mlx/array.h>

#include <memory>
#include <optional>

namespace whimbrel::ops {

/// MLX's affine scheme: each run of `group_size` inputs shares a scale and an offset.
struct Quantization {
  int bits = 0;
  int group_size = 0;
};

/// A linear layer's arrays as loaded. Plain: weight [out, in]. Quantised: weight uint32
/// [out, in * bits / 32], scales and offsets (MLX's `biases`) [out, in / group_size].
struct Matrix {
  mlx::core::array weight;
  std::optional<mlx::core::array> scales = std::nullopt;
  std::optional<mlx::core::array> offsets = std::nullopt;
  std::optional<Quantization> quantization = std::nullopt;
  std::optional<mlx::core::array> bias = std::nullopt;  // [out], added to the product
};

/// A backend's own immutable form of a Matrix. Only that backend looks inside.
class PackedMatrix {
 public:
  virtual ~PackedMatrix() = default;
};

using PackedMatrixPtr = std::shared_ptr<const PackedMatrix>;

/// Weight [width] in the activation dtype, and the epsilon added to the mean square.
struct RmsNorm {
  mlx::core::array weight;
  float eps;
};

}  // namespace whimbrel::ops
