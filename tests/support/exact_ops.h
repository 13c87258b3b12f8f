#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/kernels.h"
#include "ops/device.h"
#include "ops/ops.h"

namespace whimbrel::test {

/// Whether products with bfloat16 round activations of many rows to it.
inline bool rounds_activations(ops::cpu::Isa isa) {
  return ops::cpu::kernels_for(isa).bf16_product != nullptr;
}

/// The widest instruction set that rounds no activations to bfloat16.
inline ops::cpu::Isa widest_exact_isa() {
  const std::vector<ops::cpu::Isa>& all = ops::cpu::available_isas();
  return *std::find_if_not(all.rbegin(), all.rend(), rounds_activations);
}

/// That one, and the widest of all where it is another: the quick form of tests of every
/// instruction set.
inline std::vector<ops::cpu::Isa> main_isas() {
  const ops::cpu::Isa widest = ops::cpu::available_isas().back();
  return rounds_activations(widest) ? std::vector{widest_exact_isa(), widest} : std::vector{widest};
}

/// This machine's operations on the widest instruction set that rounds no activations to bfloat16:
/// for tests of what must be equal in exact arithmetic.
inline std::unique_ptr<const ops::Ops> exact_ops() {
  if (ops::backend_name() != "cpu") {
    return ops::make_ops("", ops::mx::float32);
  }
  return ops::cpu::make_cpu_ops(widest_exact_isa(), ops::threads());
}

}  // namespace whimbrel::test
