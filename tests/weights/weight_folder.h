#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "tests/support/source_dir.h"

namespace whimbrel::test {

/// A folder of a test's own, removed with it.
class WeightFolder {
 public:
  WeightFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "whimbrel-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("mkdtemp failed");
    }
    path_ = name;
  }
  WeightFolder(const WeightFolder&) = delete;
  WeightFolder& operator=(const WeightFolder&) = delete;
  ~WeightFolder() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// A safetensors file around a header's JSON and its data.
inline std::string with_length(std::string_view json, std::string_view data) {
  std::string bytes;
  for (uint64_t length = json.size(), i = 0; i < 8; ++i, length >>= 8) {
    bytes.push_back(static_cast<char>(length & 0xff));
  }
  return bytes.append(json).append(data);
}

/// A tensor for a file: as many bytes as the test gives, whatever dtype and shape say.
struct RawTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

/// A safetensors file of these tensors, in this order.
inline std::string safetensors_bytes(const std::vector<RawTensor>& tensors) {
  Json header = Json::object();
  std::string data;
  for (const RawTensor& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype},
        {"shape", tensor.shape},
        {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}},
    };
    data += tensor.bytes;
  }
  return with_length(header.dump(), data);
}

/// A tensor of F32 zeros.
inline RawTensor zeros(const std::string& name, const std::vector<int64_t>& shape) {
  size_t bytes = 4;
  for (const int64_t dimension : shape) {
    bytes *= static_cast<size_t>(dimension);
  }
  return {name, "F32", shape, std::string(bytes, '\0')};
}

/// One of the checkpoints that come with the project.
inline std::filesystem::path bundled_model(std::string_view name) {
  return test::source_dir() / "models" / name;
}

/// For EXPECT_TRUE: says both texts where it fails.
inline testing::AssertionResult contains(std::string_view text, std::string_view part) {
  if (text.find(part) != std::string_view::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "\"" << part << "\" is not in: " << text;
}

/// The text of the Error that `action` throws; fails the test where it throws none, one of another
/// fault, or one that doesn't say what it got.
template <typename Action>
std::string error_text(Fault fault, Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), fault) << error.what();
    EXPECT_NE(std::string_view(error.what()).find("got "), std::string_view::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

template <typename Action>
std::string model_error(Action action) {
  return error_text(Fault::model, action);
}

}  // namespace whimbrel::test
