// The kernels of one instruction set, put together. Its file in simd/ is included before this one.

#include "ops/cpu/kernels.h"

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

const Kernels& kernels() {
  static const Kernels kernels;
  return kernels;
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
