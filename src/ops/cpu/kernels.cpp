#include "ops/cpu/kernels.h"

namespace whimbrel::ops::cpu {

namespace scalar {
extern const Kernels kKernels;
}

#if defined(__x86_64__)

namespace avx2 {
extern const Kernels kKernels;
}
namespace avxvnni {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}
namespace avx512bf16 {
extern const Kernels kKernels;
}
namespace amx {
extern const Kernels kKernels;
}

const Kernels& kernels_for(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return avx2::kKernels;
    case Isa::avxvnni:
      return avxvnni::kKernels;
    case Isa::avx512:
      return avx512::kKernels;
    case Isa::avx512bf16:
      return avx512bf16::kKernels;
    case Isa::amx:
      return amx::kKernels;
    default:
      return scalar::kKernels;
  }
}

#elif defined(__aarch64__)

namespace neon {
extern const Kernels kKernels;
}

const Kernels& kernels_for(Isa isa) {
  return isa == Isa::neon ? neon::kKernels : scalar::kKernels;
}

#else

const Kernels& kernels_for(Isa) {
  return scalar::kKernels;
}

#endif

}  // namespace whimbrel::ops::cpu
