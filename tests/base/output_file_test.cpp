#include "base/output_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"

namespace whimbrel::test {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~OutputFileTest() override { fs::remove_all(folder_); }

  fs::path folder_ =
      fs::path(testing::TempDir()) /
      (std::string("output_file_") + testing::UnitTest::GetInstance()->current_test_info()->name());
  fs::path path_ = folder_ / "out.jsonl";
};

TEST_F(OutputFileTest, has_its_name_only_when_whole) {
  OutputFile out(path_);
  out.write("one\n");
  EXPECT_FALSE(fs::exists(path_));
  out.write("two\n");
  out.finish();
  EXPECT_EQ(read_file(path_, Fault::io), "one\ntwo\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(OutputFileTest, half_a_file_leaves_the_old_one) {
  {
    OutputFile whole(path_);
    whole.write("old");
    whole.finish();
  }
  {
    OutputFile(path_).write("ne");
  }
  EXPECT_EQ(read_file(path_, Fault::io), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(OutputFileTest, a_link_stays_a_link) {
  std::ofstream(path_) << "old";
  fs::create_symlink(path_, folder_ / "link");
  OutputFile out(folder_ / "link");
  out.write("x");
  out.finish();
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(path_, Fault::io), "x");
}

TEST_F(OutputFileTest, a_full_disk_is_said) {
  OutputFile out("/dev/full");
  out.write("x");
  EXPECT_THROW(out.finish(), Error);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(OutputFileTest, no_such_folder) {
  EXPECT_THROW(OutputFile(folder_ / "missing/out"), Error);
}

TEST_F(OutputFileTest, a_folder_is_no_file) {
  EXPECT_THROW(OutputFile{folder_}, Error);
}

}  // namespace
}  // namespace whimbrel::test
