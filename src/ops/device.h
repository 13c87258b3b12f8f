#pragma once

#include <string>
#include <string_view>

#include "ops/cpu/isa.h"

namespace whimbrel::ops {

/// What MLX computes on: `cpu`, `metal` or `cuda`.
std::string_view backend_name();

/// The BLAS library that float32 matrix products on a CPU reach, such as
/// `OpenBLAS 0.3.21 (SkylakeX)`; `none` where MLX uses no CBLAS.
std::string blas_description();

/// The instruction set that our own kernels use: what WHIMBREL_ISA names, or the widest of this
/// CPU. Throws as cpu::choose_isa does.
cpu::Isa chosen_isa();

/// The name of what MLX computes on, such as a CPU's model name.
std::string device_name();

/// Threads that kernels on a CPU run on: as many as were set, else one a usable core.
int threads();

/// Threads for kernels of operations that are made from now on, and for BLAS; at least 1.
void set_threads(int threads);

}  // namespace whimbrel::ops
