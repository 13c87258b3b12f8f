#define WHIMBREL_ISA_NAMESPACE avx512bf16
#include "ops/cpu/simd/avx512-inl.h"
//
#include "ops/cpu/kernels-inl.h"
//
#include "ops/cpu/kernel/floats_bf16-inl.h"

namespace whimbrel::ops::cpu::avx512bf16 {

constexpr Kernels kernels_with_bf16() {
  Kernels kernels = generic_kernels();
  kernels.bf16_product = bf16_product;
  return kernels;
}

extern const Kernels kernel_table;
constinit const Kernels kernel_table = kernels_with_bf16();

}  // namespace whimbrel::ops::cpu::avx512bf16
