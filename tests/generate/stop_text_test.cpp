#include "generate/stop_text.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace whimbrel {
namespace {

/// Everything that is passed on when `text` comes in pieces of `size` bytes.
std::string passed_on(const std::vector<std::string>& stops, const std::string& text, size_t size) {
  StopText stop_text(stops);
  std::string passed;
  for (size_t i = 0; i < text.size(); i += size) {
    passed += stop_text.push(text.substr(i, size));
  }
  return passed + stop_text.finish();
}

TEST(StopText, without_stops_nothing_is_held_back) {
  StopText stop_text({});
  EXPECT_EQ(stop_text.push("abc"), "abc");
  EXPECT_EQ(stop_text.finish(), "");
}

TEST(StopText, ends_before_the_first_stop_however_text_is_cut) {
  for (size_t size = 1; size < 12; ++size) {
    EXPECT_EQ(passed_on({"END"}, "one END two", size), "one ") << size;
    EXPECT_EQ(passed_on({"two", "END"}, "one END two", size), "one ") << size;
    EXPECT_EQ(passed_on({"aab"}, "aaaab", size), "aa") << size;
    EXPECT_EQ(passed_on({"xyz"}, "one END two", size), "one END two") << size;
  }
}

TEST(StopText, what_may_become_a_stop_is_held_back) {
  StopText stop_text({"END"});
  EXPECT_EQ(stop_text.push("one E"), "one ");
  EXPECT_EQ(stop_text.push("N"), "");
  EXPECT_EQ(stop_text.push("X"), "ENX");
  EXPECT_FALSE(stop_text.stopped());
  EXPECT_EQ(stop_text.push("EN"), "");
  EXPECT_EQ(stop_text.finish(), "EN");
}

TEST(StopText, nothing_follows_a_stop) {
  StopText stop_text({"!", "."});
  EXPECT_EQ(stop_text.matched(), "");
  EXPECT_EQ(stop_text.push("a.b"), "a");
  EXPECT_TRUE(stop_text.stopped());
  EXPECT_EQ(stop_text.matched(), ".");
  EXPECT_EQ(stop_text.push("c"), "");
  EXPECT_EQ(stop_text.finish(), "");
}

/// What the rule says, the slow way: up to the stop that ends first, the longest of those.
std::string up_to_first_stop(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    const std::string_view so_far = std::string_view(text).substr(0, end);
    size_t longest = 0;
    for (const std::string& stop : stops) {
      longest = so_far.ends_with(stop) ? std::max(longest, stop.size()) : longest;
    }
    if (longest > 0) {
      return text.substr(0, end - longest);
    }
  }
  return text;
}

TEST(StopText, the_first_to_be_complete_ends_the_text_however_it_is_cut) {
  for (size_t size = 1; size < 6; ++size) {
    EXPECT_EQ(passed_on({"bc", "abcd"}, "xabcd", size), "xa") << size;
    EXPECT_EQ(passed_on({"bcd", "abcd", "cd"}, "xabcd", size), "x") << size;
    EXPECT_EQ(passed_on({"aaab", "aab"}, "aaaab", size), "a") << size;
  }
}

TEST(StopText, random_stops_in_random_text) {
  std::mt19937 random(3);
  const auto word = [&](size_t letters, size_t longest) {
    std::string text;
    for (size_t size = 1 + random() % longest; size > 0; --size) {
      text += static_cast<char>('a' + random() % letters);
    }
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops;
    for (size_t count = random() % 5; count > 0; --count) {
      stops.push_back(word(3, 5));
    }
    const std::string text = word(3, 40);
    const size_t size = 1 + random() % 7;
    ASSERT_EQ(passed_on(stops, text, size), up_to_first_stop(stops, text)) << text;
  }
}

/// F18: one character in another, split at each byte.
TEST(StopText, no_piece_ends_inside_a_character) {
  StopText stop_text({"\xE4\xBD\xA0\xE5\xA5\xBD", "\xC3\xA9x"});
  EXPECT_EQ(stop_text.push("a\xE4\xBD\xA0"), "a");
  EXPECT_EQ(stop_text.push("\xE4\xBD\xA0"), "\xE4\xBD\xA0");
  EXPECT_EQ(stop_text.push("\xC3\xA9"), "\xE4\xBD\xA0");
  EXPECT_EQ(stop_text.push("y"), "\xC3\xA9y");
  for (size_t size = 1; size < 8; ++size) {
    EXPECT_EQ(passed_on({"\xC3\xA9"}, "\xC3\xA8\xC3\xA9", size), "\xC3\xA8") << size;
  }
}

/// F18: 16 stops of 256 bytes that overlap, in a text that nearly matches all of them all the
/// time. Looking for each stop anew behind each byte would take minutes.
TEST(StopText, costs_the_same_for_overlapping_stops) {
  std::vector<std::string> stops;
  for (size_t i = 0; i < 16; ++i) {
    stops.push_back(std::string(255 - i, 'a') + "b");
  }
  const std::string text(2'000'000, 'a');
  EXPECT_EQ(passed_on(stops, text, 1).size(), text.size());
  EXPECT_EQ(passed_on(stops, text + "b", 7).size(), text.size() - 255);
}

TEST(StopText, an_empty_stop_is_refused) {
  EXPECT_THROW(StopText({"a", ""}), Error);
}

}  // namespace
}  // namespace whimbrel
