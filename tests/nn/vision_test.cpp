#include "nn/vision.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace whimbrel::nn {
namespace {

TEST(Vision, windows_at_the_edges_are_smaller) {
  const Windows windows = window_partition({1, 10, 12}, 2, 4);
  EXPECT_EQ(windows.order, (std::vector<int32_t>{0,  1,  2,  3,  6,  7,  8,  9,  12, 13,
                                                 14, 15, 18, 19, 20, 21, 4,  5,  10, 11,
                                                 16, 17, 22, 23, 24, 25, 26, 27, 28, 29}));
  EXPECT_EQ(windows.cu_seqlens, (std::vector<int>{0, 64, 96, 112, 120}));
}

TEST(Vision, one_window_is_the_identity) {
  const Windows windows = window_partition({1, 8, 8}, 2, 4);
  std::vector<int32_t> identity(16);
  std::iota(identity.begin(), identity.end(), 0);
  EXPECT_EQ(windows.order, identity);
  EXPECT_EQ(windows.cu_seqlens, (std::vector<int>{0, 64}));
}

TEST(Vision, inverse_undoes_the_order_over_frames) {
  const Windows windows = window_partition({3, 10, 12}, 2, 4);
  ASSERT_EQ(windows.order.size(), 90U);
  for (size_t i = 0; i < windows.order.size(); ++i) {
    EXPECT_EQ(windows.order[static_cast<size_t>(windows.inverse[i])], static_cast<int32_t>(i));
  }
  EXPECT_EQ(windows.cu_seqlens.back(), 360);
}

TEST(Vision, patches_run_block_by_block) {
  const PatchPositions positions = patch_positions({2, 2, 4}, 2);
  EXPECT_EQ(positions.rows, (std::vector<int32_t>{0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(
      positions.columns, (std::vector<int32_t>{0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3})
  );
}

TEST(Vision, frames_never_attend_to_each_other) {
  EXPECT_EQ(frame_segments({3, 2, 4}), (std::vector<int>{0, 8, 16, 24}));
}

std::vector<std::array<int, 2>> pieces(const std::vector<int>& cu_seqlens, int most_mebipairs) {
  std::vector<std::array<int, 2>> ranges;
  for (const ops::RowRange& range : query_pieces(cu_seqlens, int64_t{most_mebipairs} << 20)) {
    ranges.push_back({range.first, range.count});
  }
  return ranges;
}

TEST(Vision, short_attention_is_one_piece) {
  EXPECT_EQ(pieces({0, 2048}, 4), (std::vector<std::array<int, 2>>{{0, 2048}}));
  std::vector<int> windows = {0};
  while (windows.back() < 15'872) {
    windows.push_back(windows.back() + 64);
  }
  EXPECT_EQ(pieces(windows, 4), (std::vector<std::array<int, 2>>{{0, 15'872}}));
}

TEST(Vision, long_attention_is_cut_at_multiples_within_a_segment) {
  EXPECT_EQ(
      pieces({0, 4100}, 4),
      (std::vector<std::array<int, 2>>{
          {0, 512},
          {512, 512},
          {1024, 512},
          {1536, 512},
          {2048, 512},
          {2560, 512},
          {3072, 512},
          {3584, 516}
      })
  );
  EXPECT_EQ(pieces({0, 4096}, 8), (std::vector<std::array<int, 2>>{{0, 2048}, {2048, 2048}}));
  // Two frames: the second begins where no multiple is.
  EXPECT_EQ(pieces({0, 1800, 3600}, 4), (std::vector<std::array<int, 2>>{{0, 2312}, {2312, 1288}}));
}

TEST(Vision, rows_of_no_picture_are_one_empty_piece) {
  EXPECT_EQ(pieces({0}, 4), (std::vector<std::array<int, 2>>{{0, 0}}));
}

}  // namespace
}  // namespace whimbrel::nn
