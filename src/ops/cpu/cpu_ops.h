#pragma once

#include <memory>

#include "ops/cpu/isa.h"
#include "ops/ops.h"

namespace whimbrel::ops::cpu {

/// Our own kernels on `threads` threads. Activations are float32, the cache bfloat16.
std::unique_ptr<const Ops> make_cpu_ops(Isa isa, int threads, const OpsOptions& options = {});

}  // namespace whimbrel::ops::cpu
