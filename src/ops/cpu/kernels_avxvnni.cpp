#define WHIMBREL_ISA_NAMESPACE avxvnni
#include "ops/cpu/simd/avx2-inl.h"
//
#include "ops/cpu/kernels-inl.h"

namespace whimbrel::ops::cpu::avxvnni {

extern const Kernels kernel_table;
constinit const Kernels kernel_table = generic_kernels();

}  // namespace whimbrel::ops::cpu::avxvnni
