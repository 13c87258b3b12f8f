#pragma once

#include <mlx/array.h>

#include <memory>
#include <optional>
#include <variant>

namespace whimbrel::ops {

/// MLX's affine scheme: each run of `group_size` inputs shares a scale and an offset.
struct Quantization {
  int bits = 0;
  int group_size = 0;
};

/// A linear layer's arrays as loaded. Plain: weight [out, in]. Quantised: weight uint32
/// [out, in * bits / 32], scales and offsets (MLX's `biases`) [out, in / group_size]. Those of a
/// layer's experts are stacked: all have one more axis in front, [experts, ...], and no bias.
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

/// Weight and bias [width] in the activation dtype, and the epsilon added to the variance.
struct LayerNorm {
  mlx::core::array weight;
  mlx::core::array bias;
  float eps;
};

using Norm = std::variant<RmsNorm, LayerNorm>;

/// RMS norms over head_dim on each head's query and key, before rope.
struct HeadNorms {
  RmsNorm q_norm;
  RmsNorm k_norm;
};

/// The feed-forward of a mixture-of-experts layer. The experts' matrices are stacked.
struct Experts {
  PackedMatrixPtr router;  // [experts, hidden_size], the checkpoint's `mlp.gate`
  PackedMatrixPtr gate_proj;
  PackedMatrixPtr up_proj;
  PackedMatrixPtr down_proj;
  int per_token;              // experts that a token is sent to
  bool renormalized = false;  // whether the chosen experts' weights are scaled to the sum 1
};

}  // namespace whimbrel::ops
