#include "cli/chat_line.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace whimbrel {
namespace {

using Words = std::vector<std::string>;

std::string shown(std::string_view line) {
  const std::optional<ChatCommand> command = parse_command(line);
  return command ? command->name + "|" + command->rest : "none";
}

TEST(ChatLine, a_command_is_a_name_and_the_rest) {
  EXPECT_EQ(shown("/set temperature 0.2"), "set|temperature 0.2");
  EXPECT_EQ(shown("/help"), "help|");
  EXPECT_EQ(shown("/system \t Be brief. \t"), "system|Be brief.");
  EXPECT_EQ(shown("/"), "|");
}

TEST(ChatLine, other_lines_are_no_commands) {
  EXPECT_EQ(shown("What is /help?"), "none");
  EXPECT_EQ(shown(" /help"), "none");
  EXPECT_EQ(shown(""), "none");
}

TEST(ChatLine, words_are_parted_as_by_a_shell) {
  EXPECT_EQ(split_words("a.png  b.png\tc.png "), (Words{"a.png", "b.png", "c.png"}));
  EXPECT_EQ(
      split_words("'my pic.png' \"my \\\"b\\\".png\""), (Words{"my pic.png", "my \"b\".png"})
  );
  EXPECT_EQ(split_words("my\\ pic.png it''s"), (Words{"my pic.png", "its"}));
  EXPECT_EQ(split_words("'a\\b' \"a\\b\""), (Words{"a\\b", "a\\b"}));
  EXPECT_EQ(split_words("''"), (Words{""}));
  EXPECT_EQ(split_words("  "), Words());
}

TEST(ChatLine, an_open_quote_is_told) {
  EXPECT_EQ(split_words("'my pic.png"), std::nullopt);
  EXPECT_EQ(split_words("it's"), std::nullopt);
}

TEST(ChatLine, a_tilde_in_front_is_the_home_folder) {
  const char* home = std::getenv("HOME");
  ASSERT_NE(home, nullptr);
  EXPECT_EQ(split_words("~/a.png b~/c"), (Words{std::string(home) + "/a.png", "b~/c"}));
}

TEST(ChatLine, dropped_files_are_absolute_paths_alone) {
  EXPECT_EQ(dropped_paths("/tmp/a.png"), Words{"/tmp/a.png"});
  EXPECT_EQ(
      dropped_paths("'/tmp/my pic.png' /tmp/b.png "), (Words{"/tmp/my pic.png", "/tmp/b.png"})
  );
  EXPECT_EQ(dropped_paths("/tmp/my\\ pic.png"), Words{"/tmp/my pic.png"});
  EXPECT_EQ(dropped_paths("/tmp/a.png what is this?"), Words());
  EXPECT_EQ(dropped_paths("'a.png'"), Words());
  EXPECT_EQ(dropped_paths("'/tmp/a.png"), Words());
  EXPECT_EQ(dropped_paths(""), Words());
}

}  // namespace
}  // namespace whimbrel
