#include "generate/prompt_lookup.h"

#include <gtest/gtest.h>

#include <numeric>

namespace whimbrel {
namespace {

using Ids = std::vector<int32_t>;

PromptLookup reading(const Ids& ids, int most = 4) {
  PromptLookup lookup(most);
  lookup.append(ids);
  return lookup;
}

TEST(PromptLookup, a_text_goes_on_as_it_did_before) {
  EXPECT_EQ(reading({1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3}).guess(9), (Ids{4, 5, 6, 7}));
}

TEST(PromptLookup, the_last_time_counts) {
  EXPECT_EQ(reading({1, 2, 3, 4, 9, 1, 2, 3, 5, 9, 1, 2, 3}, 1).guess(9), (Ids{5}));
}

TEST(PromptLookup, what_is_new_is_not_guessed) {
  EXPECT_EQ(reading({}).guess(4), Ids{});
  EXPECT_EQ(reading({1, 2}).guess(4), Ids{});
  EXPECT_EQ(reading({1, 2, 3}).guess(4), Ids{});
  EXPECT_EQ(reading({9, 2, 3, 4, 1, 2, 3}).guess(4), Ids{}) << "two tokens are not enough";
}

TEST(PromptLookup, a_guess_fits_into_its_room) {
  const PromptLookup lookup = reading({1, 2, 3, 4, 5, 6, 1, 2, 3});
  EXPECT_EQ(lookup.guess(2), (Ids{4, 5}));
  EXPECT_EQ(lookup.guess(0), Ids{});
  EXPECT_EQ(lookup.guess(-1), Ids{});
}

TEST(PromptLookup, a_text_that_repeats_itself_goes_on_so) {
  EXPECT_EQ(reading({7, 7, 7, 7}).guess(4), (Ids{7, 7, 7, 7}));
  EXPECT_EQ(reading({1, 2, 1, 2, 1, 2}, 5).guess(5), (Ids{1, 2, 1, 2, 1}));
}

TEST(PromptLookup, a_text_in_pieces_is_the_whole_text) {
  PromptLookup pieces = reading({1, 2, 3});
  pieces.append(Ids{4, 5, 1});
  pieces.append(Ids{2});
  pieces.append(Ids{3});
  EXPECT_EQ(pieces.guess(3), (Ids{4, 5, 1}));
}

TEST(PromptLookup, guesses_get_as_long_as_they_are_right) {
  Ids ids(20);
  std::iota(ids.begin(), ids.end(), 0);
  ids.insert(ids.end(), {0, 1, 2});
  PromptLookup lookup = reading(ids, 8);
  EXPECT_EQ(lookup.guess(99).size(), 8U);
  lookup.learn(8, 0);
  EXPECT_EQ(lookup.guess(99).size(), 1U);
  lookup.learn(0, 0);
  EXPECT_EQ(lookup.guess(99).size(), 1U) << "nothing was guessed";
  lookup.learn(1, 1);
  EXPECT_EQ(lookup.guess(99).size(), 2U);
  lookup.learn(2, 2);
  EXPECT_EQ(lookup.guess(99).size(), 4U);
  lookup.learn(4, 3);
  EXPECT_EQ(lookup.guess(99).size(), 6U);
  lookup.learn(6, 6);
  EXPECT_EQ(lookup.guess(99).size(), 8U);
}

}  // namespace
}  // namespace whimbrel
