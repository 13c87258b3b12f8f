#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/cpu/kernels.h"

namespace whimbrel::ops::cpu {

/// Panels that `outputs` outputs fill.
constexpr int panels_of(int outputs) {
  return (outputs + kLanes - 1) / kLanes;
}

/// A matrix of affine codes as files hold it, row-major: codes of a row are a little-endian string
/// of bits, [outputs, groups * group_size * bits / 8] bytes; scales and offsets [outputs, groups].
struct StoredCodes {
  const uint8_t* codes = nullptr;
  const std::byte* scales = nullptr;
  const std::byte* offsets = nullptr;
  int outputs = 0;
};

/// Writes panel `panel` (layout.panel_bytes() bytes). Outputs behind the last one are zero.
void pack_codes(const StoredCodes& stored, const CodesLayout& layout, int panel, std::byte* out);

/// A matrix of plain numbers as files hold it, row-major [outputs, inputs].
struct StoredFloats {
  const std::byte* numbers = nullptr;
  int outputs = 0;
  int inputs = 0;
};

/// Inputs of a panel: for bfloat16 a multiple of 32, else of 2.
int padded_inputs(Float type, int inputs);

/// Writes panel `panel` (layout.panel_bytes() bytes). Outputs and inputs behind the last are zero.
void pack_floats(const StoredFloats& stored, const FloatsLayout& layout, int panel, std::byte* out);

/// Row `lane` of a panel -> y [groups * group_size].
void unpack_codes_row(const std::byte* panel, const CodesLayout& layout, int lane, float* y);

/// Row `lane` of a panel, its first `inputs` numbers -> y [inputs].
void unpack_floats_row(
    const std::byte* panel, const FloatsLayout& layout, int lane, int inputs, float* y
);

/// A stored number as float32. `p` need not be aligned.
float to_float(const std::byte* p, Float type);

}  // namespace whimbrel::ops::cpu
