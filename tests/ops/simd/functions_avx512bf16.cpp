#define WHIMBREL_ISA_NAMESPACE avx512bf16
#include "ops/cpu/simd/avx512-inl.h"

#include "tests/ops/simd/functions-inl.h"
