#pragma once

#include <filesystem>
#include <string_view>

namespace whimbrel {

/// A file that may lie in a checkpoint's folder and holds no weights: stages of the model, which
/// `verify` compares with. It is never taken for the folder's only *.safetensors file.
inline constexpr std::string_view kReferenceFile = "whimbrel-reference.safetensors";

/// Whether a name is that of a file of weights.
inline bool is_weights_file(const std::filesystem::path& path) {
  return path.extension() == ".safetensors" && path.filename() != kReferenceFile;
}

}  // namespace whimbrel
