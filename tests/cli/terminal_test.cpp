#include "cli/terminal.h"

#include <gtest/gtest.h>

namespace whimbrel {
namespace {

TEST(Terminal, text_is_shown_as_it_is) {
  const std::string text = "a\tb\nÄ € 𝄞 \u00a0é";
  EXPECT_EQ(visible(text), text);
}

TEST(Terminal, control_characters_are_signs) {
  EXPECT_EQ(visible("\x1b[2J\x07"), "␛[2J␇");
  EXPECT_EQ(visible("safe\rfake"), "safe␍fake");
  EXPECT_EQ(visible(std::string_view("\0\x7f", 2)), "␀␡");
}

/// CSI as one character.
TEST(Terminal, so_are_those_of_eight_bits) {
  EXPECT_EQ(visible("\u009b2J\u0080\u009f"), "\uFFFD2J\uFFFD\uFFFD");
}

TEST(Terminal, a_byte_at_the_end_is_not_looked_beyond) {
  EXPECT_EQ(visible("a\xc2"), "a\xc2");
}

}  // namespace
}  // namespace whimbrel
