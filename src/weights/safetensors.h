#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "weights/stored_dtype.h"

namespace whimbrel {

/// One entry of a safetensors header.
struct TensorInfo {
  std::string name;  // as the file spells it
  StoredDtype dtype;
  std::vector<int64_t> shape;
  uint64_t begin;  // of the data, in bytes after the header
  uint64_t end;

  uint64_t bytes() const { return end - begin; }
};

/// "[2, 3]", for error texts.
std::string shape_text(const std::vector<int64_t>& shape);

/// Bounds on what a file may ask us to hold.
inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr size_t kMaxSafetensorsTensors = 200'000;

/// Checks and reads a header. `prefix` is the start of the file: 8 bytes of little-endian length
/// and at least as many bytes of JSON as it says; `file_size` is the size of the whole file. The
/// tensors come back in the order of their data. Accepts a file only when its tensors fill the data
/// section exactly: no overlap, no hole, no rest; known dtypes, unique names, dimensions from 0 to
/// 2^31-1 and at most 8 of them. Throws Error(Fault::model) naming `where`, the tensor, what was
/// found and what was expected.
/// Format: https://huggingface.co/docs/safetensors/index#format
std::vector<TensorInfo> parse_safetensors_header(
    std::string_view prefix, uint64_t file_size, std::string_view where
);

/// The checked header of a file; its data is not read. Regular files only (links are followed).
/// Throws Error(Fault::model) as above, Error(Fault::io) where reading fails.
std::vector<TensorInfo> read_safetensors_header(const std::filesystem::path& path);

}  // namespace whimbrel
