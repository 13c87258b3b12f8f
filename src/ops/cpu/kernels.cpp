#include "ops/cpu/kernels.h"

namespace whimbrel::ops::cpu {

namespace scalar {
extern const Kernels kernel_table;
}

#if defined(__x86_64__)

namespace avx2 {
extern const Kernels kernel_table;
}
namespace avxvnni {
extern const Kernels kernel_table;
}
namespace avx512 {
extern const Kernels kernel_table;
}
namespace avx512bf16 {
extern const Kernels kernel_table;
}
namespace amx {
extern const Kernels kernel_table;
}

const Kernels& kernels_for(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return avx2::kernel_table;
    case Isa::avxvnni:
      return avxvnni::kernel_table;
    case Isa::avx512:
      return avx512::kernel_table;
    case Isa::avx512bf16:
      return avx512bf16::kernel_table;
    case Isa::amx:
      return amx::kernel_table;
    default:
      return scalar::kernel_table;
  }
}

#elif defined(__aarch64__)

namespace neon {
extern const Kernels kernel_table;
}

const Kernels& kernels_for(Isa isa) {
  return isa == Isa::neon ? neon::kernel_table : scalar::kernel_table;
}

#else

const Kernels& kernels_for(Isa) {
  return scalar::kernel_table;
}

#endif

}  // namespace whimbrel::ops::cpu
