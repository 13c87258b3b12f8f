#include "engine/verify_reference_file.h"

#include <mlx/mlx.h>

#include <exception>

#include "base/error.h"
#include "base/output_file.h"
#include "weights/safetensors.h"

namespace whimbrel::verify {

namespace fs = std::filesystem;

namespace {

constexpr const char* kVersionKey = "whimbrel_reference";
constexpr const char* kVersion = "1";
constexpr const char* kExtension = ".safetensors";

/// MLX reports a disk that is full only by what is missing in the file.
void require_whole(const fs::path& path, size_t arrays) {
  if (read_safetensors_header(path).size() != arrays) {
    throw Error(Fault::io, path.string(), "writing failed");
  }
}

/// Beside the final file, so that a rename is enough; with the extension that MLX would add.
fs::path partial_path(const fs::path& path) {
  return fs::path(path).replace_extension(".partial.safetensors");
}

}  // namespace

void require_reference_name(const fs::path& path) {
  if (path.extension() != kExtension) {
    throw Error(
        Fault::usage,
        path.string(),
        "got another extension, expected a name that ends in {}",
        kExtension
    );
  }
}

void require_writable(const fs::path& path) {
  require_reference_name(path);
  const OutputFile probe(path);  // is removed again
}

void write_reference(const fs::path& path, const Arrays& arrays, Metadata metadata) {
  require_reference_name(path);
  metadata[kVersionKey] = kVersion;
  const fs::path partial = partial_path(path);
  try {
    mx::save_safetensors(partial.string(), arrays, std::move(metadata));
    require_whole(partial, arrays.size());
    fs::rename(partial, path);
  } catch (const std::exception& error) {
    std::error_code ignored;
    fs::remove(partial, ignored);
    throw Error(
        Fault::io,
        path.string(),
        "writing failed ({}); check the folder, permissions and the disk",
        error.what()
    );
  }
}

Reference read_reference(const fs::path& path) {
  try {
    read_safetensors_header(path);
  } catch (const Error& error) {
    throw Error(
        error.fault() == Fault::model ? Fault::usage : error.fault(),
        "reference",
        "got no file to compare with: {}",
        error.what()
    );
  }
  auto [arrays, metadata] = mx::load_safetensors(path.string());
  const auto version = metadata.find(kVersionKey);
  if (version == metadata.end() || version->second != kVersion) {
    throw Error(
        Fault::usage,
        path.string(),
        "got {}, expected a reference of version {}; write one with whimbrel verify --record",
        version == metadata.end() ? "no reference" : "version " + version->second,
        kVersion
    );
  }
  return {path.string(), metadata["model_type"], std::move(arrays)};
}

}  // namespace whimbrel::verify
