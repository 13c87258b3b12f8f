#include "models/chunk.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>

namespace whimbrel {
namespace {

/// Two tokens of text, a picture of 2 x 3 tokens, two of text.
Prompt example() {
  Prompt prompt;
  prompt.ids = {1, 2, 9, 9, 9, 9, 9, 9, 3, 4};
  prompt.media.push_back({.source = "a", .first = 2, .tokens = 6, .patches = {}});
  const std::vector<nn::VisionBlock> blocks = {{2, 2, 3, {0}}};
  prompt.positions = nn::mrope_positions(10, blocks);
  return prompt;
}

/// Row i is filled with i.
std::vector<mx::array> features() {
  return {mx::reshape(mx::arange(0.0, 6.0, 1.0), {6, 1})};
}

TEST(Chunk, text_is_an_offset) {
  const Prompt prompt = example();
  const Chunk front = prompt_chunk(prompt, features(), 0, 2);
  EXPECT_FALSE(front.axes);
  EXPECT_EQ(front.offset, 0);
  const Chunk tail = prompt_chunk(prompt, features(), 8, 10);
  EXPECT_FALSE(tail.axes);
  EXPECT_EQ(tail.offset, 5);
  EXPECT_TRUE(tail.media.empty());
}

TEST(Chunk, a_cut_picture_gives_the_rows_inside) {
  const Prompt prompt = example();
  const std::vector<mx::array> rows = features();
  struct Row {
    int first;
    int end;
    int at;
    std::vector<float> expected;
  };
  const std::vector<Row> cuts = {
      {0, 10, 2, {0, 1, 2, 3, 4, 5}}, {0, 3, 2, {0}}, {3, 6, 0, {1, 2, 3}}, {7, 9, 0, {5}}
  };
  for (const Row& cut : cuts) {
    const Chunk chunk = prompt_chunk(prompt, rows, cut.first, cut.end);
    ASSERT_EQ(chunk.media.size(), 1U);
    EXPECT_EQ(chunk.media[0].first, cut.at);
    mx::array found = mx::contiguous(chunk.media[0].features);
    found.eval();
    EXPECT_EQ(
        std::vector<float>(found.data<float>(), found.data<float>() + found.size()), cut.expected
    );
    EXPECT_EQ(std::ssize(chunk.ids), cut.end - cut.first);
  }
}

TEST(Chunk, a_picture_needs_tables) {
  const Prompt prompt = example();
  const Chunk chunk = prompt_chunk(prompt, features(), 1, 9);
  ASSERT_TRUE(chunk.axes);
  EXPECT_EQ((*chunk.axes)[1].size(), 8U);
  EXPECT_EQ((*chunk.axes)[1][1], 2);
  const nn::Rope rope(1e4, 8, nn::chunked_axes(std::vector<int>{1, 1, 2}));
  EXPECT_TRUE(plan_rope(rope, chunk).tables);
  EXPECT_FALSE(plan_rope(rope, prompt_chunk(prompt, features(), 8, 10)).tables);
}

TEST(Chunk, features_replace_embeddings) {
  const Prompt prompt = example();
  const std::unique_ptr<const ops::Ops> ops = ops::make_reference_ops(mx::float32, true);
  const ops::PackedMatrixPtr table = ops->pack({mx::full({10, 1}, 100.0F)});
  mx::array found = embed_chunk(*ops, *table, prompt_chunk(prompt, features(), 1, 9));
  found.eval();
  EXPECT_EQ(
      std::vector<float>(found.data<float>(), found.data<float>() + found.size()),
      (std::vector<float>{100, 0, 1, 2, 3, 4, 5, 100})
  );
}

}  // namespace
}  // namespace whimbrel
