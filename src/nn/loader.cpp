#include "nn/loader.h"

namespace whimbrel::nn {

namespace {

ops::Matrix as_matrix(StoredMatrix stored, std::optional<mx::array> bias) {
  ops::Matrix matrix{std::move(stored.weight)};
  matrix.scales = std::move(stored.scales);
  matrix.offsets = std::move(stored.biases);
  matrix.bias = std::move(bias);
  if (stored.bits != 0) {
    matrix.quantization = ops::Quantization{stored.bits, stored.group_size};
  }
  return matrix;
}

uint64_t stored_bytes(const ops::Matrix& matrix) {
  uint64_t bytes = matrix.weight.nbytes();
  for (const std::optional<mx::array>& array : {matrix.scales, matrix.offsets, matrix.bias}) {
    bytes += array ? array->nbytes() : 0;
  }
  return bytes;
}

}  // namespace

WeightLoader::WeightLoader(
    Checkpoint& checkpoint, const ops::Ops& ops, std::function<void(uint64_t)> on_loaded
)
    : checkpoint_(checkpoint), ops_(ops), on_loaded_(std::move(on_loaded)) {}

ops::PackedMatrixPtr WeightLoader::pack(ops::Matrix matrix) const {
  const uint64_t bytes = stored_bytes(matrix);
  ops::PackedMatrixPtr packed = ops_.pack(std::move(matrix));
  on_loaded_(bytes);
  return packed;
}

mx::array WeightLoader::vector(const std::string& name, int64_t width) const {
  const mx::array stored = checkpoint_.take(name, {static_cast<int>(width)});
  mx::array packed = ops_.pack_vector(stored);
  on_loaded_(stored.nbytes());
  return packed;
}

std::optional<mx::array> WeightLoader::bias_of(
    const std::string& path, int64_t out, Bias bias
) const {
  if (bias == Bias::absent) {
    return std::nullopt;
  }
  return checkpoint_.take(path + ".bias", {static_cast<int>(out)});
}

ops::PackedMatrixPtr WeightLoader::linear(
    const std::string& path, int64_t out, int64_t in, Bias bias
) const {
  return pack(as_matrix(checkpoint_.take_matrix(path, out, in), bias_of(path, out, bias)));
}

ops::PackedMatrixPtr WeightLoader::embedding(
    const std::string& path, int64_t rows, int64_t width
) const {
  return linear(path, rows, width, Bias::absent);
}

ops::Experts WeightLoader::experts(
    const std::string& mlp, const ExpertsShape& shape, int per_token
) const {
  StoredExperts stored = take_experts(checkpoint_, mlp + ".experts", shape);
  const auto packed = [this](StoredMatrix matrix) {
    return pack(as_matrix(std::move(matrix), std::nullopt));
  };
  return {
      .router = linear(mlp + ".gate", shape.num_experts, shape.hidden_size, Bias::absent),
      .gate_proj = packed(std::move(stored.gate_proj)),
      .up_proj = packed(std::move(stored.up_proj)),
      .down_proj = packed(std::move(stored.down_proj)),
      .per_token = per_token,
  };
}

ops::RmsNorm WeightLoader::rms_norm(const std::string& path, int64_t width, double eps) const {
  return {vector(path + ".weight", width), static_cast<float>(eps)};
}

ops::LayerNorm WeightLoader::layer_norm(const std::string& path, int64_t width, double eps) const {
  return {vector(path + ".weight", width), vector(path + ".bias", width), static_cast<float>(eps)};
}

ops::PackedMatrixPtr WeightLoader::patch_embedding(
    const std::string& path, int64_t out, const PatchShape& patch, Bias bias
) const {
  ops::Matrix matrix{checkpoint_.take_patch_embedding(
      path + ".weight", out, patch.channels, patch.temporal_patch_size, patch.patch_size
  )};
  matrix.bias = bias_of(path, out, bias);
  return pack(std::move(matrix));
}

}  // namespace whimbrel::nn
