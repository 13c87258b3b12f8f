#pragma once

#include <span>

#include "engine/verify_result.h"
#include "engine/verify_run.h"

namespace whimbrel::verify {

/// No stage holds NaN or infinity; the figures are the largest |value| of each stage.
CheckResult check_finite(std::span<const Run> runs);

/// Every stage is in the activation dtype; otherwise the first one that isn't is named.
CheckResult check_dtype(std::span<const Run> runs, mx::Dtype activations);

}  // namespace whimbrel::verify
