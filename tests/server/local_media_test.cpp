// F33: files of the server's machine.
#include "server/local_media.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "server/media_sources.h"
#include "tests/support/made_by_tool.h"

namespace whimbrel::http {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRefusal =
    "[image_url] got a file that is missing or not for requests, expected a regular file in the "
    "folder that this server was given";

class F33LocalFiles : public testing::Test {
 protected:
  F33LocalFiles() {
    fs::create_directories(folder() / "deep/er");
    write(folder() / "a.png", "picture");
    write(folder() / "deep/er/a b.png", "deep");
    write(root_.path() / "secret", "secret");
  }

  fs::path folder() const { return root_.path() / "media"; }

  static void write(const fs::path& path, std::string_view bytes) { std::ofstream(path) << bytes; }

  std::string read(std::string_view path) const {
    return read_file_below(folder(), path, "image_url", 100);
  }

  /// By its address, as a request names it.
  std::string read_url(const std::string& url) const {
    const MediaSources sources{.folder = folder()};
    return media_reader(sources)(url, MediaKind::image).bytes;
  }

  void expect_refused(std::string_view path) const {
    try {
      read(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::input);
      EXPECT_EQ(error.what(), kRefusal) << path;
    }
  }

  test::TemporaryFolder root_;
};

TEST_F(F33LocalFiles, below_the_folder_are_read) {
  EXPECT_EQ(read("a.png"), "picture");
  EXPECT_EQ(read("deep//er/a b.png"), "deep");
  EXPECT_EQ(read((folder() / "deep/er/a b.png").string()), "deep");
  EXPECT_EQ(read_url("file://a.png"), "picture");
  EXPECT_EQ(read_url("file://deep/er/a%20b.png"), "deep");
  EXPECT_EQ(read_url("FILE://" + (folder() / "a.png").string()), "picture");
}

TEST_F(F33LocalFiles, outside_are_refused_as_if_they_were_not_there) {
  expect_refused("b.png");
  expect_refused("../secret");
  expect_refused("deep/../../secret");
  expect_refused("deep/../a.png");
  expect_refused("./a.png");
  expect_refused("/etc/passwd");
  expect_refused("/proc/self/environ");
  expect_refused((root_.path() / "secret").string());
  expect_refused(folder().string() + "/../secret");
  expect_refused(folder().string() + "-other/a.png");
  expect_refused("a.png/");
  expect_refused("a.png/b");
  expect_refused("");
  expect_refused("/");
  expect_refused(folder().string());
  expect_refused(std::string_view("a.png\0/b", 8));
  EXPECT_THROW(read_url("file://%2e%2e/secret"), Error);
  EXPECT_THROW(read_url("file://..%2fsecret"), Error);
  EXPECT_THROW(read_url("file://a.png%00"), Error);
}

TEST_F(F33LocalFiles, links_are_not_followed) {
  fs::create_symlink(root_.path() / "secret", folder() / "link.png");
  fs::create_symlink("a.png", folder() / "inside.png");
  fs::create_directory_symlink(root_.path(), folder() / "up");
  fs::create_directory_symlink("deep", folder() / "down");
  fs::create_directory_symlink("/proc/self", folder() / "self");
  for (const char* path :
       {"link.png", "inside.png", "up/secret", "down/er/a b.png", "self/environ", "self/fd/0"}) {
    expect_refused(path);
  }
}

TEST_F(F33LocalFiles, what_is_no_regular_file_is_refused_at_once) {
  ASSERT_EQ(mkfifo((folder() / "fifo").c_str(), 0600), 0);
  expect_refused("fifo");
  expect_refused("deep");
  EXPECT_THROW(read_file_below("/dev", "null", "image_url", 100), Error);
  EXPECT_THROW(read_file_below("/dev", "zero", "image_url", 100), Error);
}

TEST_F(F33LocalFiles, may_not_be_too_large) {
  write(folder() / "large", std::string(101, 'x'));
  try {
    read("large");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "[image_url] got a file that is too large, expected at most 100 bytes"
    );
  }
}

TEST_F(F33LocalFiles, are_not_opened_unless_a_folder_was_given) {
  const MediaReader reader = media_reader(MediaSources{});
  for (const char* url :
       {"file://a.png", "file:///etc/passwd", "/etc/passwd", "a.png", "", "ftp://host/a.png"}) {
    EXPECT_THROW(reader(url, MediaKind::image), Error) << url;
  }
}

}  // namespace
}  // namespace whimbrel::http
