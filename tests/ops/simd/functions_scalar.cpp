#define WHIMBREL_ISA_NAMESPACE scalar
#include "ops/cpu/simd/scalar-inl.h"

#include "tests/ops/simd/functions-inl.h"
