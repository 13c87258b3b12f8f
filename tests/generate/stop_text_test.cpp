#include "generate/stop_text.h"

#include <gtest/gtest.h>

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
  StopText stop_text({"."});
  EXPECT_EQ(stop_text.push("a.b"), "a");
  EXPECT_TRUE(stop_text.stopped());
  EXPECT_EQ(stop_text.push("c"), "");
  EXPECT_EQ(stop_text.finish(), "");
}

TEST(StopText, an_empty_stop_is_refused) {
  EXPECT_THROW(StopText({"a", ""}), Error);
}

}  // namespace
}  // namespace whimbrel
