#pragma once

#include <mlx/array.h>

#include <filesystem>
#include <string>
#include <unordered_map>

namespace whimbrel::verify {

namespace mx = mlx::core;

using Arrays = std::unordered_map<std::string, mx::array>;
using Metadata = std::unordered_map<std::string, std::string>;

/// Stages of a model for the compiled-in inputs, as a build or a checkpoint that somebody trusts
/// computed them. Keys and dtypes: verify_reference.h.
struct Reference {
  std::string where;            // its file, for error texts
  std::string model_type = {};  // of the checkpoint's config.json
  Arrays arrays = {};
};

/// Throws Error(Fault::usage) where a reference can't be written under this name.
void require_reference_name(const std::filesystem::path& path);

/// The same, and throws Error(Fault::io) where the file can't be opened; leaves no trace.
void require_writable(const std::filesystem::path& path);

/// Writes a *.safetensors file, which appears whole or not at all; one of this name is replaced.
/// `metadata` has to hold `model_type`.
/// Throws Error(Fault::io), and Error(Fault::usage) on another extension.
void write_reference(const std::filesystem::path& path, const Arrays& arrays, Metadata metadata);

/// Reads a whole reference. Throws Error(Fault::usage) where the file is missing, is no whole
/// safetensors file, no reference, or one of another version.
Reference read_reference(const std::filesystem::path& path);

}  // namespace whimbrel::verify
