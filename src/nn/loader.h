#pragma once

#include <functional>
#include <string>

#include "ops/ops.h"
#include "weights/checkpoint.h"

namespace whimbrel::nn {

namespace mx = mlx::core;

/// Whether a linear layer's checkpoint entry has a `.bias` beside its `.weight`.
enum class Bias { absent, present };

/// Takes a model's tensors out of a checkpoint in the form that the chosen backend computes with.
/// Each method throws Error(Fault::model) that names a missing or misshapen tensor.
class WeightLoader {
 public:
  /// `on_loaded` hears the bytes of each tensor as it becomes ready.
  WeightLoader(
      Checkpoint& checkpoint, const ops::Ops& ops, std::function<void(uint64_t)> on_loaded
  );

  /// `<path>.weight` [out, in], plain or quantised, and `<path>.bias` [out].
  ops::PackedMatrixPtr linear(const std::string& path, int64_t out, int64_t in, Bias bias) const;

  /// `<path>.weight` [rows, width], plain or quantised.
  ops::PackedMatrixPtr embedding(const std::string& path, int64_t rows, int64_t width) const;

  /// `<path>.weight` [width].
  ops::RmsNorm rms_norm(const std::string& path, int64_t width, double eps) const;

  /// The kernel `<path>.weight` of a patch embedding as a matrix
  /// [out, channels * temporal * patch * patch], whichever axis order is stored.
  ops::PackedMatrixPtr patch_embedding(
      const std::string& path, int64_t out, int64_t channels, int64_t temporal, int64_t patch
  ) const;

  Checkpoint& checkpoint() const { return checkpoint_; }
  const ops::Ops& ops() const { return ops_; }

 private:
  ops::PackedMatrixPtr pack(ops::Matrix matrix) const;

  Checkpoint& checkpoint_;
  const ops::Ops& ops_;
  std::function<void(uint64_t)> on_loaded_;
};

}  // namespace whimbrel::nn
