#include "base/build_info.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "base/file.h"
#include "tests/support/source_dir.h"

namespace whimbrel {
namespace {

bool is_hex(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c); });
}

TEST(BuildInfo, CommitIsAHashOrUnknown) {
  const std::string& commit = build_info().commit;
  EXPECT_TRUE(commit == "unknown" || (commit.size() == 40 && is_hex(commit))) << commit;
}

TEST(BuildInfo, SaysHowItWasBuilt) {
  const std::string project = read_file(test::source_dir() / "CMakeLists.txt", Fault::io);
  const std::string declared = "project(whimbrel VERSION " + build_info().version + " ";
  EXPECT_NE(project.find(declared), std::string::npos) << declared;
  EXPECT_EQ(build_info().mlx, "0.32.4");
  EXPECT_NE(build_info().compiler.find_first_of("0123456789"), std::string::npos);
  EXPECT_NE(build_info().flags.find("-std=c++20"), std::string::npos);
  EXPECT_EQ(build_info().flags.find("-W"), std::string::npos) << "warnings say nothing of a binary";
}

#if defined(__linux__)

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

TEST(BuildInfo, BuildIdIsTheNoteInThisProgramsFile) {
  const std::string& id = build_info().build_id;
  ASSERT_EQ(id.size(), 40) << id;
  ASSERT_TRUE(is_hex(id)) << id;
  const std::string program = read_file("/proc/self/exe", Fault::io, uint64_t{1} << 30);
  EXPECT_NE(program.find(std::string("GNU\0", 4) + bytes_of(id)), std::string::npos);
}

#endif

}  // namespace
}  // namespace whimbrel
