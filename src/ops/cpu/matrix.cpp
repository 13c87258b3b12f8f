#include "ops/cpu/matrix.h"

#include <mlx/mlx.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "ops/cpu/pack.h"

namespace whimbrel::ops::cpu {

namespace mx = mlx::core;

namespace {

constexpr std::array kBits = {2, 3, 4, 5, 6, 8};
constexpr std::array kGroupSizes = {32, 64, 128};

Float float_type(mx::Dtype dtype) {
  if (dtype == mx::bfloat16) {
    return Float::bf16;
  }
  return dtype == mx::float16 ? Float::f16 : Float::f32;
}

/// The layout of rows of `inputs` numbers.
CodesLayout codes_layout(const Matrix& matrix, int inputs) {
  const auto [bits, group_size] = *matrix.quantization;
  if (std::ranges::count(kBits, bits) == 0 || std::ranges::count(kGroupSizes, group_size) == 0) {
    throw Error(
        Fault::model,
        "pack",
        "got weights of {} bits in groups of {}, expected 2, 3, 4, 5, 6 or 8 bits in groups of 32, "
        "64 or 128",
        bits,
        group_size
    );
  }
  return {bits, group_size, float_type(matrix.scales->dtype()), inputs / group_size};
}

/// Arrays in one piece and evaluated; numbers in a dtype that panels know.
mx::array readable(const mx::array& array) {
  const bool known = array.dtype() == mx::bfloat16 || array.dtype() == mx::float16 ||
                     array.dtype() == mx::float32 || array.dtype() == mx::uint32;
  mx::array plain = mx::contiguous(known ? array : mx::astype(array, mx::float32));
  plain.eval();
  return plain;
}

const std::byte* bytes_of(const mx::array& array) {
  return array.data<std::byte>();
}

}  // namespace

CpuMatrix::CpuMatrix(const Matrix& matrix, std::shared_ptr<WeightMemory> memory, ThreadPool& pool)
    : memory_(std::move(memory)) {
  const bool stacked = matrix.weight.ndim() == 3;
  experts_ = stacked ? matrix.weight.shape(0) : 1;
  outputs_ = matrix.weight.shape(-2);
  if (matrix.quantization) {
    inputs_ = matrix.scales->shape(-1) * matrix.quantization->group_size;
    layout_ = codes_layout(matrix, inputs_);
  } else {
    inputs_ = matrix.weight.shape(-1);
    const Float type = float_type(matrix.weight.dtype());
    layout_ = FloatsLayout{type, padded_inputs(type, inputs_)};
  }
  panels_ = memory_->allocate(static_cast<size_t>(experts_) * panels() * panel_bytes());
  pack(matrix, pool);
  if (matrix.bias) {
    mx::array bias = mx::astype(*matrix.bias, mx::float32);
    bias.eval();
    bias_.assign(bias.data<float>(), bias.data<float>() + outputs_);
    bias_.resize(static_cast<size_t>(panels()) * kLanes);
  }
}

void CpuMatrix::pack(const Matrix& matrix, ThreadPool& pool) {
  const mx::array weight = readable(matrix.weight);
  const size_t rows = static_cast<size_t>(outputs_);
  if (const auto* layout = std::get_if<CodesLayout>(&layout_)) {
    const mx::array scales = readable(*matrix.scales);
    const mx::array offsets = readable(mx::astype(*matrix.offsets, scales.dtype()));
    const size_t code_bytes = rows * weight.shape(-1) * sizeof(uint32_t);
    const size_t scale_bytes = rows * layout->groups * layout->scale_bytes();
    pool.parallel_for(experts_ * panels(), [&](int task, int) {
      const int expert = task / panels();
      const StoredCodes stored{
          weight.data<uint8_t>() + expert * code_bytes,
          bytes_of(scales) + expert * scale_bytes,
          bytes_of(offsets) + expert * scale_bytes,
          outputs_
      };
      pack_codes(stored, *layout, task % panels(), panels_ + task * panel_bytes());
    });
    return;
  }
  const auto& layout = std::get<FloatsLayout>(layout_);
  const size_t bytes = rows * inputs_ * weight.itemsize();
  pool.parallel_for(experts_ * panels(), [&](int task, int) {
    const StoredFloats stored{bytes_of(weight) + task / panels() * bytes, outputs_, inputs_};
    pack_floats(stored, layout, task % panels(), panels_ + task * panel_bytes());
  });
}

int CpuMatrix::panels() const {
  return panels_of(outputs_);
}

size_t CpuMatrix::panel_bytes() const {
  return std::visit([](const auto& layout) { return layout.panel_bytes(); }, layout_);
}

const std::byte* CpuMatrix::panel(int expert, int index) const {
  return panels_ + (static_cast<size_t>(expert) * panels() + index) * panel_bytes();
}

const float* CpuMatrix::bias(int panel) const {
  return bias_.empty() ? nullptr : bias_.data() + static_cast<size_t>(panel) * kLanes;
}

void CpuMatrix::unpack_row(int output, float* y) const {
  const std::byte* from = panel(0, output / kLanes);
  if (const auto* layout = std::get_if<CodesLayout>(&layout_)) {
    unpack_codes_row(from, *layout, output % kLanes, y);
  } else {
    unpack_floats_row(from, std::get<FloatsLayout>(layout_), output % kLanes, inputs_, y);
  }
}

}  // namespace whimbrel::ops::cpu
