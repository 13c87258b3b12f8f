#define WHIMBREL_ISA_NAMESPACE scalar
#include "ops/cpu/simd/scalar-inl.h"
//
#include "ops/cpu/kernels-inl.h"

namespace whimbrel::ops::cpu::scalar {

extern const Kernels kKernels;
constinit const Kernels kKernels = generic_kernels(Isa::scalar);

}  // namespace whimbrel::ops::cpu::scalar
