#pragma once

#include "engine/verify_result.h"
#include "engine/verify_run.h"

namespace whimbrel::verify {

/// The last 32 tokens one by one through the decode step give the logits of the whole prompt in one
/// forward: within the tolerance of the dtype, and with the same best token wherever it is decided.
/// The last picture has to end before them. In a model with experts each layer is given the rows of
/// the whole prompt and compared by itself: rounding may send a token to another expert of nearly
/// the same weight, and nothing behind that would be comparable (verify_layers.h).
CheckResult check_cached(std::string check, const Model& model, const Run& whole);

/// So does the prompt in chunks of 1, 7 and 64 tokens, whose edges cut pictures.
CheckResult check_chunks(std::string check, const Model& model, const Run& whole);

}  // namespace whimbrel::verify
