#pragma once

#include <memory>

#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/kernels.h"
#include "ops/device.h"
#include "ops/ops.h"

namespace whimbrel::test {

/// This machine's operations on the widest instruction set that rounds no activations to bfloat16:
/// for tests of what must be equal in exact arithmetic.
inline std::unique_ptr<const ops::Ops> exact_ops() {
  if (ops::backend_name() != "cpu") {
    return ops::make_ops("", ops::mx::float32);
  }
  ops::cpu::Isa widest = ops::cpu::Isa::scalar;
  for (const ops::cpu::Isa isa : ops::cpu::available_isas()) {
    if (ops::cpu::kernels_for(isa).bf16_product == nullptr) {
      widest = isa;
    }
  }
  return ops::cpu::make_cpu_ops(widest, ops::threads());
}

}  // namespace whimbrel::test
