#include "models/prompt_chunk.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>

namespace whimbrel {
namespace {

namespace mx = mlx::core;

/// Two tokens of text, a picture of 2 x 3 tokens, two of text.
Prompt example() {
  Prompt prompt;
  prompt.ids = {1, 2, 9, 9, 9, 9, 9, 9, 3, 4};
  prompt.media.push_back({.source = "a", .runs = {{2, 6}}});
  const std::vector<nn::VisionBlock> blocks = {{2, 2, 3, {0}}};
  prompt.positions = nn::mrope_positions(10, blocks);
  return prompt;
}

std::vector<float> to_floats(const mx::array& array) {
  mx::array values = mx::contiguous(array);
  values.eval();
  return {values.data<float>(), values.data<float>() + values.size()};
}

/// Row i is filled with i, and with 10 + i behind the first decoder layer.
std::vector<nn::Features> features() {
  const mx::array rows = mx::reshape(mx::arange(0.0, 6.0, 1.0), {6, 1});
  return {{rows, {mx::add(rows, mx::array(10.0F))}}};
}

TEST(Chunk, text_is_an_offset) {
  const Prompt prompt = example();
  const nn::Chunk front = prompt_chunk(prompt, features(), 0, 2);
  EXPECT_FALSE(front.axes);
  EXPECT_EQ(front.offset, 0);
  EXPECT_TRUE(front.prefill);
  const nn::Chunk tail = prompt_chunk(prompt, features(), 8, 10);
  EXPECT_FALSE(tail.axes);
  EXPECT_EQ(tail.offset, 5);
  EXPECT_TRUE(tail.media.empty());
}

TEST(Chunk, a_cut_picture_gives_the_rows_inside) {
  const Prompt prompt = example();
  const std::vector<nn::Features> rows = features();
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
    const nn::Chunk chunk = prompt_chunk(prompt, rows, cut.first, cut.end);
    ASSERT_EQ(chunk.media.size(), 1U);
    EXPECT_EQ(chunk.media[0].first, cut.at);
    EXPECT_EQ(to_floats(chunk.media[0].features.rows), cut.expected);
    std::vector<float> deep = cut.expected;
    for (float& value : deep) {
      value += 10;
    }
    EXPECT_EQ(to_floats(chunk.media[0].features.deepstack.at(0)), deep);
    EXPECT_EQ(std::ssize(chunk.ids), cut.end - cut.first);
  }
}

TEST(Chunk, runs_of_one_video_take_its_rows_one_after_the_other) {
  Prompt prompt;
  prompt.ids = {1, 9, 9, 9, 2, 9, 9, 9, 3};
  prompt.media.push_back({.kind = MediaKind::video, .source = "a", .runs = {{1, 3}, {5, 3}}});
  const std::vector<nn::VisionBlock> blocks = {{1, 1, 3, {0}}, {5, 1, 3, {0}}};
  prompt.positions = nn::mrope_positions(9, blocks);
  const std::vector<nn::Features> rows = features();
  const nn::Chunk whole = prompt_chunk(prompt, rows, 0, 9);
  ASSERT_EQ(whole.media.size(), 2U);
  EXPECT_EQ(whole.media[1].first, 5);
  EXPECT_EQ(to_floats(whole.media[0].features.rows), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(to_floats(whole.media[1].features.rows), (std::vector<float>{3, 4, 5}));
  const nn::Chunk cut = prompt_chunk(prompt, rows, 3, 7);
  ASSERT_EQ(cut.media.size(), 2U);
  EXPECT_EQ(cut.media[0].first, 0);
  EXPECT_EQ(cut.media[1].first, 2);
  EXPECT_EQ(to_floats(cut.media[0].features.rows), (std::vector<float>{2}));
  EXPECT_EQ(to_floats(cut.media[1].features.rows), (std::vector<float>{3, 4}));
  EXPECT_EQ(to_floats(cut.media[1].features.deepstack.at(0)), (std::vector<float>{13, 14}));
}

TEST(Chunk, a_picture_needs_tables) {
  const Prompt prompt = example();
  const nn::Chunk chunk = prompt_chunk(prompt, features(), 1, 9);
  ASSERT_TRUE(chunk.axes);
  EXPECT_EQ((*chunk.axes)[1].size(), 8U);
  EXPECT_EQ((*chunk.axes)[1][1], 2);
  const nn::Rope rope(1e4, 8, nn::chunked_axes(std::vector<int>{1, 1, 2}));
  const auto ops = ops::make_reference_ops(mx::float32, ops::Arithmetic::float32);
  EXPECT_TRUE(nn::plan_rope(*ops, rope, chunk).tables);
  EXPECT_FALSE(nn::plan_rope(*ops, rope, prompt_chunk(prompt, features(), 8, 10)).tables);
}

TEST(Chunk, features_replace_embeddings) {
  const Prompt prompt = example();
  const std::unique_ptr<const ops::Ops> ops =
      ops::make_reference_ops(mx::float32, ops::Arithmetic::float32);
  const ops::PackedMatrixPtr table = ops->pack({mx::full({10, 1}, 100.0F)});
  const nn::Chunk chunk = prompt_chunk(prompt, features(), 1, 9);
  EXPECT_EQ(
      to_floats(nn::embed_chunks(*ops, *table, {&chunk, 1})),
      (std::vector<float>{100, 0, 1, 2, 3, 4, 5, 100})
  );
  const std::vector<nn::Chunk> two = {prompt_chunk(prompt, features(), 8, 10), chunk};
  EXPECT_EQ(
      to_floats(nn::embed_chunks(*ops, *table, two)),
      (std::vector<float>{100, 100, 100, 0, 1, 2, 3, 4, 5, 100})
  );
}

TEST(Chunk, deepstack_rows_are_added_to_the_media_of_their_chunk) {
  const Prompt prompt = example();
  const std::vector<nn::Chunk> chunks = {
      prompt_chunk(prompt, features(), 8, 10), prompt_chunk(prompt, features(), 5, 9)
  };
  const mx::array x = mx::full({6, 1}, 1.0F);
  EXPECT_EQ(to_floats(nn::add_deepstack(x, chunks, 0)), (std::vector<float>{1, 1, 14, 15, 16, 1}));
  EXPECT_EQ(to_floats(nn::add_deepstack(x, chunks, 1)), std::vector<float>(6, 1));
}

}  // namespace
}  // namespace whimbrel
