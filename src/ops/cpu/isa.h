#pragma once

#include <string_view>
#include <vector>

namespace whimbrel::ops::cpu {

/// Instruction sets that kernels are compiled for, each wider than the one before it.
/// avx2: with FMA and F16C. avxvnni: avx2 and dot products of bytes. avx512: F, BW, DQ, VL and
/// VNNI. avx512bf16: and dot products of bfloat16. amx: and tiles of int8 and bfloat16. neon:
/// AArch64 with dot products of bytes.
enum class Isa { scalar, neon, avx2, avxvnni, avx512, avx512bf16, amx };

std::string_view isa_name(Isa isa);

/// Those that this CPU and its operating system offer, the widest last; `scalar` always.
const std::vector<Isa>& available_isas();

/// The one to compute with: the widest, or the one that `requested` (WHIMBREL_ISA) names, empty for
/// none. Throws Error(Fault::usage) on a name that is unknown or not offered here.
Isa choose_isa(std::string_view requested);

}  // namespace whimbrel::ops::cpu
