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

ops::PackedMatrixPtr WeightLoader::linear(
    const std::string& path, int64_t out, int64_t in, Bias bias
) const {
  StoredMatrix stored = checkpoint_.take_matrix(path, out, in);
  if (bias == Bias::absent) {
    return pack(as_matrix(std::move(stored), std::nullopt));
  }
  return pack(
      as_matrix(std::move(stored), checkpoint_.take(path + ".bias", {static_cast<int>(out)}))
  );
}

ops::PackedMatrixPtr WeightLoader::embedding(
    const std::string& path, int64_t rows, int64_t width
) const {
  return linear(path, rows, width, Bias::absent);
}

ops::RmsNorm WeightLoader::rms_norm(const std::string& path, int64_t width, double eps) const {
  const mx::array weight = checkpoint_.take(path + ".weight", {static_cast<int>(width)});
  ops::RmsNorm norm{ops_.pack_vector(weight), static_cast<float>(eps)};
  on_loaded_(weight.nbytes());
  return norm;
}

ops::PackedMatrixPtr WeightLoader::patch_embedding(
    const std::string& path, int64_t out, int64_t channels, int64_t temporal, int64_t patch
) const {
  return pack({checkpoint_.take_patch_embedding(path + ".weight", out, channels, temporal, patch)});
}

}  // namespace whimbrel::nn
