#define WHIMBREL_ISA_NAMESPACE amx
#include "ops/cpu/simd/avx512-inl.h"
//
#include "ops/cpu/kernels-inl.h"
//
#include "ops/cpu/simd/amx-inl.h"
//
#include "ops/cpu/kernel/codes_amx-inl.h"

namespace whimbrel::ops::cpu::amx {

constexpr Kernels tile_kernels() {
  Kernels kernels = generic_kernels(Isa::amx);
  kernels.codes_product = codes_product_on_tiles;
  kernels.product_panels = 2;
  return kernels;
}

extern const Kernels kKernels;
constinit const Kernels kKernels = tile_kernels();

}  // namespace whimbrel::ops::cpu::amx
