#include "weights/safetensors.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <tuple>

#include "weights/quote.h"
#include "weights/safetensors_json.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

constexpr size_t kLengthBytes = 8;

/// The header's length as the file states it, known to fit into the file.
uint64_t header_length(std::string_view prefix, uint64_t file_size, std::string_view where) {
  if (prefix.size() < kLengthBytes || file_size < kLengthBytes) {
    throw Error(
        Fault::model,
        where,
        "got a file of {} bytes, expected safetensors, which start with {}; get the file again",
        std::min<uint64_t>(prefix.size(), file_size),
        kLengthBytes
    );
  }
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(prefix[i]);
  }
  const uint64_t longest = std::min(kMaxSafetensorsHeaderBytes, file_size - kLengthBytes);
  if (length > longest) {
    throw Error(
        Fault::model,
        where,
        "got a header of {} bytes, expected at most {} in this file; it is cut off or no "
        "safetensors file, get it again",
        length,
        longest
    );
  }
  return length;
}

/// The bytes that dtype and shape ask for, or nothing where that is no 64-bit number.
std::optional<uint64_t> bytes_of(const TensorInfo& tensor) {
  uint64_t bytes = dtype_bytes(tensor.dtype);
  for (const int64_t dimension : tensor.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dimension), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

void check_extent(const TensorInfo& tensor, uint64_t data_bytes, std::string_view where) {
  const std::optional<uint64_t> bytes = bytes_of(tensor);
  if (!bytes || tensor.end < tensor.begin || tensor.bytes() != *bytes) {
    throw Error(
        Fault::model,
        where,
        "tensor {}: got data_offsets [{}, {}], expected {} bytes for {} of shape {}",
        quote(tensor.name),
        tensor.begin,
        tensor.end,
        bytes ? fmt::to_string(*bytes) : "a 64-bit number of",
        dtype_name(tensor.dtype),
        shape_text(tensor.shape)
    );
  }
  if (tensor.end > data_bytes) {
    throw Error(
        Fault::model,
        where,
        "tensor {}: got an end at byte {} of the data, expected at most {}, which is where the "
        "file ends; it is cut off, get it again",
        quote(tensor.name),
        tensor.end,
        data_bytes
    );
  }
}

std::vector<TensorInfo> in_order_of_data(std::vector<TensorInfo> tensors) {
  const auto by_data = [](const TensorInfo& left, const TensorInfo& right) {
    return std::tie(left.begin, left.end, left.name) < std::tie(right.begin, right.end, right.name);
  };
  std::sort(tensors.begin(), tensors.end(), by_data);
  return tensors;
}

/// Checks that tensors, in the order of their data, fill it without overlap, hole or rest.
void check_layout(
    const std::vector<TensorInfo>& tensors, uint64_t data_bytes, std::string_view where
) {
  uint64_t position = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.begin != position) {
      throw Error(
          Fault::model,
          where,
          "tensor {}: got data from byte {}, expected {}, where the tensor before it ends ({})",
          quote(tensor.name),
          tensor.begin,
          position,
          tensor.begin < position ? "they overlap" : "there is a hole"
      );
    }
    position = tensor.end;
  }
  if (position != data_bytes) {
    throw Error(
        Fault::model,
        where,
        "got {} bytes of data, expected {}, where the last tensor ends; get the file again",
        data_bytes,
        position
    );
  }
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<TensorInfo> parse_safetensors_header(
    std::string_view prefix, uint64_t file_size, std::string_view where
) {
  const uint64_t length = header_length(prefix, file_size, where);
  const std::string_view json = prefix.substr(kLengthBytes, length);
  if (json.size() < length || !json.starts_with('{')) {
    throw Error(
        Fault::model,
        where,
        "got a header that is no JSON object of {} bytes, expected one; get the file again",
        length
    );
  }
  std::vector<TensorInfo> tensors = in_order_of_data(read_safetensors_json(json, where));
  const uint64_t data_bytes = file_size - kLengthBytes - length;
  for (const TensorInfo& tensor : tensors) {
    check_extent(tensor, data_bytes, where);
  }
  check_layout(tensors, data_bytes, where);
  return tensors;
}

std::vector<TensorInfo> read_safetensors_header(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (!fs::is_regular_file(status)) {
    throw Error(
        Fault::model,
        path.string(),
        "got {}, expected a safetensors file",
        fs::exists(status) ? "something that is no regular file" : "no such file"
    );
  }
  const uint64_t file_size = fs::file_size(path, code);
  std::ifstream in(path, std::ios::binary);
  if (code || !in) {
    throw Error(Fault::io, path.string(), "opening failed; check its permissions");
  }
  std::string prefix(std::min<uint64_t>(kLengthBytes, file_size), '\0');
  in.read(prefix.data(), static_cast<std::streamsize>(prefix.size()));
  const uint64_t length = in ? header_length(prefix, file_size, path.string()) : 0;
  prefix.resize(kLengthBytes + length);
  in.read(prefix.data() + kLengthBytes, static_cast<std::streamsize>(length));
  if (!in) {
    throw Error(Fault::io, path.string(), "reading its header failed; check the disk");
  }
  return parse_safetensors_header(prefix, file_size, path.string());
}

}  // namespace whimbrel
