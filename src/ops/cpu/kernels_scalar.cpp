#define WHIMBREL_ISA_NAMESPACE scalar
#include "ops/cpu/simd/scalar-inl.h"
//
#include "ops/cpu/kernels-inl.h"

namespace whimbrel::ops::cpu::scalar {

extern const Kernels kernel_table;
constinit const Kernels kernel_table = generic_kernels();

}  // namespace whimbrel::ops::cpu::scalar
