#include "tests/support/safetensors_file.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "base/file.h"
#include "base/json.h"

namespace whimbrel::test {

namespace {

float half_to_float(uint16_t half) {
  const int exponent = (half >> 10) & 0x1f;
  const int mantissa = half & 0x3ff;
  const float sign = (half & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0) {
    return sign * std::ldexp(static_cast<float>(mantissa), -24);
  }
  if (exponent == 31) {
    return mantissa == 0 ? sign * INFINITY : NAN;
  }
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

float bfloat_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

template <typename T>
std::vector<T> values_of(const StoredTensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(T));
  return values;
}

[[noreturn]] void wrong_dtype(std::string_view name, const StoredTensor& tensor) {
  throw std::invalid_argument(fmt::format("{} is stored as {}", name, tensor.dtype));
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) {
  const std::string bytes = read_file(path, Fault::io);
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), sizeof(header_size));
  const std::string_view header = std::string_view(bytes).substr(8, header_size);
  const std::string_view data = std::string_view(bytes).substr(8 + header_size);
  const Json json = parse_json(header, path.string(), Fault::io);
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") {
      continue;
    }
    const uint64_t begin = entry.at("data_offsets").at(0).get<uint64_t>();
    const uint64_t end = entry.at("data_offsets").at(1).get<uint64_t>();
    tensors_[name] = {
        .dtype = entry.at("dtype").get<std::string>(),
        .shape = entry.at("shape").get<std::vector<int64_t>>(),
        .bytes = std::string(data.substr(begin, end - begin)),
    };
  }
}

bool SafetensorsFile::has(std::string_view name) const {
  return tensors_.contains(name);
}

const StoredTensor& SafetensorsFile::at(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw std::out_of_range(fmt::format("no tensor {}", name));
  }
  return found->second;
}

std::vector<float> SafetensorsFile::floats(std::string_view name) const {
  const StoredTensor& tensor = at(name);
  if (tensor.dtype == "F32") {
    return values_of<float>(tensor);
  }
  if (tensor.dtype != "F16" && tensor.dtype != "BF16") {
    wrong_dtype(name, tensor);
  }
  std::vector<float> values;
  for (const uint16_t bits : values_of<uint16_t>(tensor)) {
    values.push_back(tensor.dtype == "F16" ? half_to_float(bits) : bfloat_to_float(bits));
  }
  return values;
}

std::vector<int32_t> SafetensorsFile::ints(std::string_view name) const {
  const StoredTensor& tensor = at(name);
  if (tensor.dtype == "I32") {
    return values_of<int32_t>(tensor);
  }
  if (tensor.dtype != "I64") {
    wrong_dtype(name, tensor);
  }
  std::vector<int32_t> values;
  for (const int64_t value : values_of<int64_t>(tensor)) {
    if (value != static_cast<int32_t>(value)) {
      throw std::out_of_range(fmt::format("{} holds {}", name, value));
    }
    values.push_back(static_cast<int32_t>(value));
  }
  return values;
}

}  // namespace whimbrel::test
