#include "engine/prefix_key.h"

#include <gtest/gtest.h>

namespace whimbrel {
namespace {

Patches picture(float value, std::array<int, 3> grid = {1, 2, 2}) {
  Patches patches;
  patches.values.assign(static_cast<size_t>(4 * 3), value);
  patches.count = 4;
  patches.width = 3;
  patches.grid_thw = grid;
  return patches;
}

/// Two tokens of text, four of a picture, two of text.
Prompt example(float value) {
  Prompt prompt;
  prompt.ids = {1, 2, 9, 9, 9, 9, 3, 4};
  prompt.media.push_back({.source = "a", .runs = {{2, 4}}, .patches = picture(value)});
  prompt.positions = nn::mrope_positions(8, {});
  return prompt;
}

TEST(PrefixKey, tokens_in_common) {
  const PrefixKey key = prefix_key(example(0));
  EXPECT_EQ(common_tokens(key, key), 8);
  PrefixKey other = key;
  other.ids[6] = 5;
  EXPECT_EQ(common_tokens(key, other), 6);
  other.ids.resize(4);
  EXPECT_EQ(common_tokens(key, other), 4);
  EXPECT_EQ(common_tokens(other, key), 4);
  EXPECT_EQ(common_tokens(key, {}), 0);
}

TEST(PrefixKey, another_picture_ends_it) {
  const PrefixKey key = prefix_key(example(0));
  EXPECT_EQ(common_tokens(key, prefix_key(example(1))), 2);
  PrefixKey text = key;
  text.media.clear();
  EXPECT_EQ(common_tokens(key, text), 2) << "the same ids, and no picture";
  EXPECT_EQ(common_tokens(text, key), 2);
}

/// A video of the same frames at other times is rotated otherwise.
TEST(PrefixKey, other_positions_end_it) {
  const PrefixKey key = prefix_key(example(0));
  Prompt slower = example(0);
  slower.positions.axes[0][4] += 3;
  EXPECT_EQ(common_tokens(key, prefix_key(slower)), 2);
  EXPECT_EQ(prefix_key(slower).media[0].content, key.media[0].content) << "the tower sees the same";
}

/// The same bytes as another shape are another picture.
TEST(PrefixKey, a_picture_is_its_shape_too) {
  const std::string content = media_content(picture(0.5F));
  EXPECT_EQ(media_content(picture(0.5F)), content);
  EXPECT_NE(media_content(picture(0.5F, {1, 4, 1})), content);
  EXPECT_NE(media_content(picture(0.5F, {1, 1, 4})), content);
  EXPECT_NE(media_content(picture(0.25F)), content);
}

}  // namespace
}  // namespace whimbrel
