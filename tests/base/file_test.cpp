#include "base/file.h"

#include <gtest/gtest.h>

#include <fstream>

namespace whimbrel {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  FileTest() {
    path_ = fs::temp_directory_path() /
            ("whimbrel_file_test_" +
             std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::ofstream(path_, std::ios::binary) << std::string("a\0b\n", 4);
  }
  ~FileTest() override { fs::remove(path_); }

  fs::path path_;
};

TEST_F(FileTest, reads_all_bytes) {
  EXPECT_EQ(read_file(path_, Fault::input), std::string("a\0b\n", 4));
  EXPECT_EQ(read_file_if_present(path_, Fault::input), std::string("a\0b\n", 4));
}

TEST_F(FileTest, refuses_what_it_cannot_read) {
  const auto fault_of = [](const fs::path& path, uint64_t max_bytes) {
    try {
      read_file(path, Fault::input, max_bytes);
    } catch (const Error& error) {
      return std::string(error.what()).substr(0, path.string().size() + 2);
    }
    return std::string();
  };
  for (const fs::path& path :
       {path_ / "below", fs::path("/no/such/file"), fs::temp_directory_path()}) {
    EXPECT_EQ(fault_of(path, 100), "[" + path.string() + "]");
  }
  EXPECT_EQ(fault_of(path_, 3), "[" + path_.string() + "]");
  EXPECT_FALSE(read_file_if_present("/no/such/file", Fault::input));
}

}  // namespace
}  // namespace whimbrel
