// Any bytes as the start of a weight file: the header check accepts a sound file or throws Error.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "weights/safetensors.h"

namespace {

constexpr size_t kSizeBytes = 8;

/// What the loader relies on once a header was accepted.
bool fills_file(const std::vector<whimbrel::TensorInfo>& tensors, uint64_t data_bytes) {
  uint64_t position = 0;
  for (const whimbrel::TensorInfo& tensor : tensors) {
    uint64_t bytes = whimbrel::dtype_bytes(tensor.dtype);
    for (const int64_t dimension : tensor.shape) {
      bytes *= static_cast<uint64_t>(dimension);
    }
    if (tensor.begin != position || tensor.bytes() != bytes) {
      return false;
    }
    position = tensor.end;
  }
  return position == data_bytes;
}

uint64_t read_u64(std::string_view bytes) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

}  // namespace

/// The first 8 bytes say by how much the file is longer than what is given of it, little-endian.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.size() < kSizeBytes) {
    return 0;
  }
  const std::string_view prefix = input.substr(kSizeBytes);
  const uint64_t file_size = prefix.size() + read_u64(input);
  try {
    const std::vector<whimbrel::TensorInfo> tensors =
        whimbrel::parse_safetensors_header(prefix, file_size, "fuzz");
    if (!fills_file(tensors, file_size - kSizeBytes - read_u64(prefix))) {
      std::abort();
    }
  } catch (const whimbrel::Error&) {
  }
  return 0;
}
