#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace whimbrel::test {

/// One tensor of a safetensors file, its bytes as stored.
struct StoredTensor {
  std::string dtype;  // "F32", "F16", "BF16", "I32" …
  std::vector<int64_t> shape;
  std::string bytes;
};

/// A safetensors file of a test, read whole. For trusted test data only: the library's own reader
/// is the strict one.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  bool has(std::string_view name) const;
  /// Throws std::out_of_range naming the tensor when there is none.
  const StoredTensor& at(std::string_view name) const;
  const std::vector<int64_t>& shape(std::string_view name) const { return at(name).shape; }
  /// F32, F16 and BF16 widened to float.
  std::vector<float> floats(std::string_view name) const;
  /// I32, and I64 that fits.
  std::vector<int32_t> ints(std::string_view name) const;
  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }

 private:
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

}  // namespace whimbrel::test
