#pragma once

#include <string_view>

namespace whimbrel {

/// A file that may lie in a checkpoint's folder and holds no weights: stages of the model, which
/// `verify` compares with. It is never taken for the folder's only *.safetensors file.
inline constexpr std::string_view kReferenceFile = "whimbrel-reference.safetensors";

}  // namespace whimbrel
