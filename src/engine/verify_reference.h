#pragma once

#include <span>
#include <string_view>

#include "engine/verify_reference_file.h"
#include "engine/verify_result.h"
#include "engine/verify_run.h"

namespace whimbrel::verify {

/// What a reference holds of these runs:
///   INPUT/ids        [tokens] int32
///   INPUT/grid_thw   [pictures, 3] int32, where there are pictures
///   INPUT/positions  [3, tokens] int32
///   INPUT/picture.I/patches  [patches, width] float32
///   INPUT/picture.I/STAGE    of the tower
///   INPUT/STAGE              of the decoder
///   INPUT/logits     [16, vocab_size] of the last tokens
/// Stages are named as the stage listener hears them and are in the activation dtype.
Arrays reference_arrays(std::span<const Run> runs);

/// Throws Error(Fault::usage) where the reference is of another model_type or of other inputs:
/// other ids or grids, that is another tokenizer, template or picture size, or pictures on one side
/// only.
void require_comparable(
    const Reference& reference, std::string_view model_type, const Inputs& inputs
);

/// Compares in the order of computing and names the first stage that differs by more than the
/// tolerance of the coarser dtype. Throws Error(Fault::usage) where the model has other stages or
/// shapes.
CheckResult check_reference(const Reference& reference, std::span<const Run> runs);

}  // namespace whimbrel::verify
