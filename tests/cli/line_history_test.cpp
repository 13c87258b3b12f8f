#include "cli/line_history.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"

namespace whimbrel {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

class LineHistory : public testing::Test {
 protected:
  LineHistory()
      : folder_(fs::path(testing::TempDir()) / ("whimbrel_lines_" + std::to_string(getpid()))),
        file_(folder_ / "deep" / "history") {
    fs::remove_all(folder_);
  }
  ~LineHistory() override { fs::remove_all(folder_); }

  mode_t mode() const {
    struct stat status = {};
    EXPECT_EQ(stat(file_.c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  fs::path folder_;
  fs::path file_;
};

TEST_F(LineHistory, lines_come_back_in_their_order) {
  EXPECT_EQ(read_history(file_), Lines());
  append_history(file_, "first");
  append_history(file_, "zweite Zeile ä");
  EXPECT_EQ(read_history(file_), (Lines{"first", "zweite Zeile ä"}));
}

TEST_F(LineHistory, the_file_is_its_owners_alone) {
  const mode_t mask = umask(0);
  append_history(file_, "secret");
  umask(mask);
  EXPECT_EQ(mode(), 0600U);
  fs::permissions(file_, fs::perms(0644));
  append_history(file_, "another");
  EXPECT_EQ(mode(), 0600U);
}

TEST_F(LineHistory, a_long_file_is_cut_to_its_last_lines) {
  fs::create_directories(file_.parent_path());
  std::ofstream out(file_);
  for (size_t i = 0; i < 2 * kHistoryLines; ++i) {
    out << i << '\n';
  }
  out.close();
  EXPECT_EQ(read_history(file_).front(), std::to_string(kHistoryLines));
  append_history(file_, "new");
  const Lines lines = read_history(file_);
  EXPECT_EQ(lines.size(), kHistoryLines);
  EXPECT_EQ(lines.back(), "new");
  EXPECT_EQ(mode(), 0600U);
  std::ifstream in(file_);
  std::string first;
  std::getline(in, first);
  EXPECT_EQ(first, std::to_string(kHistoryLines));
}

TEST_F(LineHistory, a_folder_that_takes_no_files_is_told) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "deep") << "no folder";
  EXPECT_THROW(append_history(file_, "line"), Error);
}

TEST_F(LineHistory, where_it_lies) {
  const auto with = [](const char* state, const char* home, const char* off) {
    state != nullptr ? setenv("XDG_STATE_HOME", state, 1) : unsetenv("XDG_STATE_HOME");
    home != nullptr ? setenv("HOME", home, 1) : unsetenv("HOME");
    off != nullptr ? setenv("WHIMBREL_NO_HISTORY", off, 1) : unsetenv("WHIMBREL_NO_HISTORY");
    return history_file();
  };
  const char* own = std::getenv("HOME");
  const std::string kept = own != nullptr ? own : "/";
  EXPECT_EQ(with("/s", "/h", nullptr), fs::path("/s/whimbrel/history"));
  EXPECT_EQ(with("", "/h", ""), fs::path("/h/.local/state/whimbrel/history"));
  EXPECT_EQ(with(nullptr, nullptr, nullptr), std::nullopt);
  EXPECT_EQ(with("/s", "/h", "1"), std::nullopt);
  setenv("HOME", kept.c_str(), 1);
  unsetenv("XDG_STATE_HOME");
  unsetenv("WHIMBREL_NO_HISTORY");
}

}  // namespace
}  // namespace whimbrel
