#pragma once

#include <functional>
#include <span>

#include "engine/verify_result.h"
#include "engine/verify_run.h"

namespace whimbrel::verify {

/// A vision tower, or what stands for one in a test.
using Encode = std::function<nn::Features(const Patches&)>;

/// A request leaves nothing behind: the logits of `text`, run before all pictures, come out the
/// same bit for bit behind the picture request, which is run again.
CheckResult check_text_after_picture(const Model& model, const Run& text, const Input& picture);

/// Features belong to their picture: those of each of the prompt's pictures, taken from the tower
/// one by one, are the same bit for bit in the order of the prompt and in the reverse, and no two
/// pictures share theirs.
CheckResult check_picture_order(const Encode& encode, const Prompt& prompt);

/// The residual stream begins with the features at the tokens of their pictures, in both orders,
/// bit for bit.
CheckResult check_picture_rows(std::span<const Run* const> runs, const MediaRules& rules);

}  // namespace whimbrel::verify
