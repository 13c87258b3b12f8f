#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tests/support/source_dir.h"
#include "text/tokenizer.h"

namespace whimbrel {

/// A folder of the repository's models/.
inline std::filesystem::path model_folder(std::string_view name) {
  return test::source_dir() / "models" / name;
}

inline const Tokenizer& tiny_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::load(model_folder("tiny-qwen3-vl-4bit"));
  return tokenizer;
}

/// An empty folder that a test fills, and that goes with the test.
class TextFolder : public testing::Test {
 protected:
  TextFolder() {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("whimbrel_text_") + test.test_suite_name() + "_" + test.name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~TextFolder() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(std::string_view name, std::string_view bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  std::filesystem::path folder_;
};

/// The Error that `work` throws. A test fails where it throws none.
template <typename Work>
Error error_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "got no error";
  return Error(Fault::check, "test", "got no error");
}

}  // namespace whimbrel
