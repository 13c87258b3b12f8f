#pragma once

#include <functional>
#include <string>

#include "ops/ops.h"
#include "weights/checkpoint.h"
#include "weights/experts.h"

namespace whimbrel::nn {

namespace mx = mlx::core;

/// Whether a linear layer's checkpoint entry has a `.bias` beside its `.weight`.
enum class Bias { absent, present };

/// What one row of a vision tower's input holds.
struct PatchShape {
  int channels;
  int temporal_patch_size;
  int patch_size;
};

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

  /// Router `<mlp>.gate` and experts `<mlp>.experts` of one layer, in any form that files hold.
  ops::Experts experts(const std::string& mlp, const ExpertsShape& shape, int per_token) const;

  /// `<path>.weight` [width].
  ops::RmsNorm rms_norm(const std::string& path, int64_t width, double eps) const;

  /// `<path>.weight` and `<path>.bias` [width].
  ops::LayerNorm layer_norm(const std::string& path, int64_t width, double eps) const;

  /// The kernel `<path>.weight` of a patch embedding as a matrix
  /// [out, channels * temporal * patch * patch], whichever axis order is stored, and its bias.
  ops::PackedMatrixPtr patch_embedding(
      const std::string& path, int64_t out, const PatchShape& patch, Bias bias
  ) const;

  Checkpoint& checkpoint() const { return checkpoint_; }
  const ops::Ops& ops() const { return ops_; }

 private:
  ops::PackedMatrixPtr pack(ops::Matrix matrix) const;
  mx::array vector(const std::string& name, int64_t width) const;
  std::optional<mx::array> bias_of(const std::string& path, int64_t out, Bias bias) const;

  Checkpoint& checkpoint_;
  const ops::Ops& ops_;
  std::function<void(uint64_t)> on_loaded_;
};

}  // namespace whimbrel::nn
