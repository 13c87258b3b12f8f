#include "base/sha256.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"

namespace whimbrel::test {
namespace {

// FIPS 180-4, the examples of its appendix.
TEST(Sha256, known_sums) {
  EXPECT_EQ(Sha256().hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(
      Sha256().update("abc").hex(),
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
  );
}

TEST(Sha256, pieces_are_the_whole) {
  EXPECT_EQ(Sha256().update("a").update("").update("bc").hex(), Sha256().update("abc").hex());
}

TEST(Sha256, a_file_is_its_bytes) {
  const std::string path = testing::TempDir() + "/sha256_test.bin";
  const std::string bytes(3'000'001, 'x');
  std::ofstream(path, std::ios::binary) << bytes;
  Sha256 sum;
  update_with_file(sum, path);
  EXPECT_EQ(sum.hex(), Sha256().update(bytes).hex());
}

TEST(Sha256, a_missing_file_is_an_error) {
  Sha256 sum;
  EXPECT_THROW(update_with_file(sum, testing::TempDir() + "/no-such-file"), Error);
}

}  // namespace
}  // namespace whimbrel::test
