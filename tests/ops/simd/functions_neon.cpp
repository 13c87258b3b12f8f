#define WHIMBREL_ISA_NAMESPACE neon
#include "ops/cpu/simd/neon-inl.h"

#include "tests/ops/simd/functions-inl.h"
