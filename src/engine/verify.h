#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/verify_reference_file.h"
#include "engine/verify_result.h"
#include "engine/verify_run.h"

namespace whimbrel::verify {

/// Hears each result as soon as it is there.
using ResultListener = std::function<void(CheckResult)>;

/// A loaded checkpoint, and what is asked of it.
struct Subject {
  const Frontend& frontend;
  const Model& model;
  mx::Dtype activations;
  const Inputs& inputs;
};

/// Runs the recorded inputs whole, one behind the other, a text first: before any picture.
std::vector<Run> run_inputs(const Model& model, const Inputs& inputs);

/// All checks of a loaded model on runs of its inputs. Those of pictures are not applicable without
/// a vision tower, `reference` where there is none. Throws Error(Fault::usage) where the reference
/// is of another model.
void check_model(
    const Subject& subject,
    std::span<const Run> runs,
    const std::optional<Reference>& reference,
    const ResultListener& on_result
);

/// Nothing failed, and something passed.
bool all_passed(std::span<const CheckResult> results);

}  // namespace whimbrel::verify
