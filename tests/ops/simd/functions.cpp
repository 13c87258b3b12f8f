#include "tests/ops/simd/functions.h"

namespace whimbrel::ops::cpu {

namespace scalar {
SimdFunctions simd_functions();
}

#if defined(__x86_64__)

namespace avx2 {
SimdFunctions simd_functions();
}
namespace avxvnni {
SimdFunctions simd_functions();
}
namespace avx512 {
SimdFunctions simd_functions();
}
namespace avx512bf16 {
SimdFunctions simd_functions();
}

SimdFunctions simd_functions_for(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return avx2::simd_functions();
    case Isa::avxvnni:
      return avxvnni::simd_functions();
    case Isa::avx512:
      return avx512::simd_functions();
    case Isa::avx512bf16:
    case Isa::amx:
      return avx512bf16::simd_functions();
    default:
      return scalar::simd_functions();
  }
}

#elif defined(__aarch64__)

namespace neon {
SimdFunctions simd_functions();
}

SimdFunctions simd_functions_for(Isa isa) {
  return isa == Isa::neon ? neon::simd_functions() : scalar::simd_functions();
}

#else

SimdFunctions simd_functions_for(Isa) {
  return scalar::simd_functions();
}

#endif

}  // namespace whimbrel::ops::cpu
