#include "ops/cpu/kernels.h"

#include <stdexcept>

namespace whimbrel::ops::cpu {

namespace avx512 {
extern const Kernels kKernels;
}

const Kernels& kernels_for(Isa isa) {
  (void)isa;
  return avx512::kKernels;
}

}  // namespace whimbrel::ops::cpu
