#include "base/digest.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"

namespace whimbrel::test {
namespace {

// FIPS 180-4, the examples of its appendix.
TEST(Digest, known_sums) {
  EXPECT_EQ(Digest().hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(
      Digest().update("abc").hex(),
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
  );
}

TEST(Digest, sha1_is_what_git_uses) {
  EXPECT_EQ(
      Digest(DigestKind::sha1).update("abc").hex(), "a9993e364706816aba3e25717850c26c9cd0d89d"
  );
}

TEST(Digest, pieces_are_the_whole) {
  EXPECT_EQ(Digest().update("a").update("").update("bc").hex(), Digest().update("abc").hex());
}

TEST(Digest, a_file_is_its_bytes) {
  const std::string path = testing::TempDir() + "/sha256_test.bin";
  const std::string bytes(3'000'001, 'x');
  std::ofstream(path, std::ios::binary) << bytes;
  Digest sum;
  update_with_file(sum, path);
  EXPECT_EQ(sum.hex(), Digest().update(bytes).hex());
}

TEST(Digest, a_missing_file_is_an_error) {
  Digest sum;
  EXPECT_THROW(update_with_file(sum, testing::TempDir() + "/no-such-file"), Error);
}

}  // namespace
}  // namespace whimbrel::test
