#define WHIMBREL_ISA_NAMESPACE avx512
#include "ops/cpu/simd/avx512-inl.h"
//
#include "ops/cpu/kernels-inl.h"

namespace whimbrel::ops::cpu::avx512 {

extern const Kernels kernel_table;
constinit const Kernels kernel_table = generic_kernels();

}  // namespace whimbrel::ops::cpu::avx512
