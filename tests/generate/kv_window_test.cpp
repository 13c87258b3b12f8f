#include "generate/kv_window.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"

namespace whimbrel {
namespace {

/// 100 tokens with a picture of 20 tokens from 10 on, and a video from 50 to 70.
Prompt example() {
  Prompt prompt;
  prompt.ids.resize(100);
  prompt.media.push_back({.source = "first.png", .runs = {{10, 20}}});
  prompt.media.push_back({.kind = MediaKind::video, .source = "clip", .runs = {{50, 8}, {62, 8}}});
  return prompt;
}

bool is_cut(const Prompt& prompt, int border) {
  return std::ranges::any_of(prompt.media, [border](const MediaSpan& span) {
    return span.first_token() < border && border < span.end_token();
  });
}

/// Feeds `total` tokens in chunks and checks at each step what must always hold.
std::vector<DroppedTokens> run(const Prompt& prompt, const KVLimit& limit, int chunk, int total) {
  KVWindow window(limit, prompt);
  std::vector<DroppedTokens> drops;
  int rows = 0;
  int begin = window.keep();
  for (int next = 0; next < total;) {
    const int wanted = next < prompt.tokens() ? std::min(next + chunk, prompt.tokens()) : next + 1;
    const KVWindow::Step step = window.make_room(next, wanted);
    if (step.drop) {
      EXPECT_EQ(step.drop->first, begin);
      EXPECT_LE(step.drop->end, next) << "tokens that are not there yet";
      EXPECT_FALSE(is_cut(prompt, step.drop->end)) << step.drop->end;
      const int at_once = std::clamp((limit.max_rows - window.keep()) / 2, 1, 256);
      EXPECT_LE(step.drop->end - step.drop->first, at_once + 19) << "with the rest of a picture";
      rows -= step.drop->end - step.drop->first;
      begin = step.drop->end;
      drops.push_back(*step.drop);
    }
    EXPECT_GT(step.end, next);
    EXPECT_LE(step.end, wanted);
    rows += step.end - next;
    EXPECT_LE(rows, limit.max_rows);
    next = step.end;
  }
  return drops;
}

TEST(KVWindow, without_a_limit_nothing_is_dropped) {
  const Prompt prompt = example();
  KVWindow window({}, prompt);
  const KVWindow::Step step = window.make_room(0, 100);
  EXPECT_FALSE(step.drop);
  EXPECT_EQ(step.end, 100);
  EXPECT_FALSE(window.dropped());
}

TEST(KVWindow, holds_its_promises_for_all_sizes) {
  const Prompt prompt = example();
  for (int max_rows = 28; max_rows <= 160; ++max_rows) {
    for (const int keep : {0, 4, 8}) {
      for (const int chunk : {1, 7, 64, 100}) {
        const std::vector<DroppedTokens> drops = run(prompt, {max_rows, keep}, chunk, 150);
        EXPECT_EQ(drops.empty(), max_rows >= 150) << max_rows;
      }
    }
  }
}

TEST(KVWindow, keeps_no_half_of_a_picture) {
  const Prompt prompt = example();
  EXPECT_EQ(KVWindow({60, 15}, prompt).keep(), 10);
  EXPECT_EQ(KVWindow({60, 30}, prompt).keep(), 30);
  EXPECT_EQ(KVWindow({60, 10}, prompt).keep(), 10);
}

TEST(KVWindow, drops_several_rows_at_a_time) {
  const Prompt prompt = example();
  const std::vector<DroppedTokens> drops = run(prompt, {110, 4}, 100, 150);
  ASSERT_EQ(drops.size(), 1U);
  EXPECT_EQ(drops[0].end, 70) << "half of the window, and the video that it would cut";
}

TEST(KVWindow, a_long_chunk_leaves_recent_tokens) {
  Prompt prompt;
  prompt.ids.resize(5000);
  for (const int max_rows : {256, 512, 1024, 4096}) {
    KVWindow window({max_rows, 4}, prompt);
    int begin = window.keep();
    for (int next = 0; next < 5000;) {
      const KVWindow::Step step = window.make_room(next, std::min(next + 512, 5000));
      begin = step.drop ? step.drop->end : begin;
      if (step.drop) {
        EXPECT_GE(next - begin, (max_rows - 4) / 2) << "tokens that the next one sees";
      }
      next = step.end;
    }
  }
}

TEST(KVWindow, says_all_that_was_dropped) {
  const Prompt prompt = example();
  KVWindow window({60, 4}, prompt);
  for (int next = 0; next < 100;) {
    next = window.make_room(next, std::min(next + 10, 100)).end;
  }
  ASSERT_TRUE(window.dropped());
  EXPECT_EQ(window.dropped()->first, 4);
  EXPECT_GE(window.dropped()->end, 44);
}

TEST(KVWindow, a_picture_that_cannot_fit_is_refused) {
  const Prompt prompt = example();
  try {
    const KVWindow window({23, 4}, prompt);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    EXPECT_NE(std::string(error.what()).find("first.png"), std::string::npos);
  }
  EXPECT_NO_THROW(KVWindow({24, 4}, prompt));
  EXPECT_THROW(KVWindow({4, 4}, prompt), Error);
  EXPECT_THROW(require_valid({.max_rows = 100, .keep = 100}), Error);
  EXPECT_NO_THROW(require_valid({}));
}

}  // namespace
}  // namespace whimbrel
