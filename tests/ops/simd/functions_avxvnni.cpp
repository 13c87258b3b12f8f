#define WHIMBREL_ISA_NAMESPACE avxvnni
#include "ops/cpu/simd/avx2-inl.h"

#include "tests/ops/simd/functions-inl.h"
