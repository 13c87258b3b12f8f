#include "weights/fingerprint.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "tests/support/source_dir.h"

namespace whimbrel::test {
namespace {

namespace fs = std::filesystem;

class FingerprintTest : public testing::Test {
 protected:
  FingerprintTest() {
    fs::remove_all(folder_);
    fs::copy(source_dir() / "models/tiny-qwen2-5-vl-4bit", folder_);
  }
  ~FingerprintTest() override { fs::remove_all(folder_); }

  void append(const std::string& name) const {
    std::ofstream(folder_ / name, std::ios::app) << "\n";
  }

  fs::path folder_ =
      fs::path(testing::TempDir()) /
      (std::string("fingerprint_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(FingerprintTest, does_not_depend_on_the_place) {
  const std::string sum = checkpoint_sha256(folder_);
  EXPECT_EQ(sum.size(), 64U);
  EXPECT_EQ(sum, checkpoint_sha256(source_dir() / "models/tiny-qwen2-5-vl-4bit"));
}

TEST_F(FingerprintTest, one_changed_weight_changes_it) {
  const std::string sum = checkpoint_sha256(folder_);
  {
    std::fstream file(
        folder_ / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary
    );
    file.seekg(-1, std::ios::end);
    const char last = static_cast<char>(file.get());
    file.seekp(-1, std::ios::end);
    file.put(static_cast<char>(last ^ 1));
  }
  EXPECT_NE(sum, checkpoint_sha256(folder_));
}

TEST_F(FingerprintTest, config_and_preprocessing_count) {
  std::string sum = checkpoint_sha256(folder_);
  for (const char* name : {"config.json", "preprocessor_config.json", "processor_config.json"}) {
    append(name);
    const std::string changed = checkpoint_sha256(folder_);
    EXPECT_NE(changed, sum) << name;
    sum = changed;
  }
  append("tokenizer.json");
  EXPECT_EQ(sum, checkpoint_sha256(folder_));
}

TEST_F(FingerprintTest, no_weights_are_an_error) {
  fs::remove(folder_ / "model.safetensors");
  EXPECT_THROW(checkpoint_sha256(folder_), Error);
}

}  // namespace
}  // namespace whimbrel::test
