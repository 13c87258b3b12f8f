#include "base/base64.h"

#include <gtest/gtest.h>

namespace whimbrel {
namespace {

TEST(Base64, decodes_every_padding) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("Zg=="), "f");
  EXPECT_EQ(decode_base64("Zm8="), "fo");
  EXPECT_EQ(decode_base64("Zm9v"), "foo");
  EXPECT_EQ(decode_base64("AAD/+w=="), std::string("\0\0\xff\xfb", 4));
}

TEST(Base64, refuses_everything_else) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zm9v\n", " Zm9", "Zm-v", "Zg==Zg==", "====", "Z===", "Zm=v"}) {
    EXPECT_FALSE(decode_base64(text)) << text;
  }
}

}  // namespace
}  // namespace whimbrel
