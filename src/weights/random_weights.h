#pragma once

#include <mlx/array.h>

#include <cstdint>
#include <string>
#include <vector>

#include "weights/safetensors.h"

namespace whimbrel {

/// A tensor of random numbers: floats spread evenly over [low, high], or uint32 words of random
/// bits. The same seed draws the same numbers, whatever their bounds and on any machine.
struct RandomTensor {
  std::string name;
  StoredDtype dtype = StoredDtype::bf16;  // bf16, f16, f32 or u32
  std::vector<int64_t> shape = {};
  double low = 0;  // floats only
  double high = 0;
  uint64_t seed = 0;
};

/// The tensor's entry in a checkpoint.
TensorInfo tensor_info(const RandomTensor& tensor);

/// The numbers, drawn by all processors when MLX evaluates the array.
mlx::core::array random_array(const RandomTensor& tensor);

}  // namespace whimbrel
