#define WHIMBREL_ISA_NAMESPACE neon
#include "ops/cpu/simd/neon-inl.h"
//
#include "ops/cpu/kernels-inl.h"

namespace whimbrel::ops::cpu::neon {

extern const Kernels kernel_table;
constinit const Kernels kernel_table = generic_kernels();

}  // namespace whimbrel::ops::cpu::neon
