#pragma once

#include <cstddef>

#include "ops/cpu/isa.h"

// The functions of src/ops/cpu/simd as functions on memory, one table an instruction set, so that a
// test can compare them.

namespace whimbrel::ops::cpu {

/// What 64 bytes of an operand hold.
enum class Numbers {
  f32,
  ordered_f32,  // no NaN
  near_i32,     // floats that some 32-bit integer is near
  i32,
  words,  // bfloat16, float16
  bytes,
  small_bytes,  // below 128
};

struct SimdFunction {
  const char* name = nullptr;
  Numbers a = {};
  Numbers b = {};
  Numbers c = {};
  Numbers result = {};
  /// Reads 64 bytes from each operand and writes up to 64 of `result`.
  void (*apply)(const std::byte* a, const std::byte* b, const std::byte* c, std::byte* result) =
      nullptr;
};

struct SimdFunctions {
  const SimdFunction* first = nullptr;
  int count = 0;
};

/// The same functions in the same order for every instruction set that this program was built with.
SimdFunctions simd_functions_for(Isa isa);

}  // namespace whimbrel::ops::cpu
