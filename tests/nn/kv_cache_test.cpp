#include "nn/kv_cache.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>

namespace whimbrel::nn {
namespace {

namespace mx = mlx::core;

constexpr ops::HeadShape kShape = {4, 2, 8};

TEST(KVCache, starts_empty_and_grows_in_steps) {
  KVCache cache(3, kShape, {.dtype = mx::float32});
  EXPECT_EQ(cache.length(), 0);
  LayerCache& layer = cache.layer(1);
  reserve(layer, 1);
  EXPECT_EQ(layer.capacity(), KVCache::kStep);
  layer.length = KVCache::kStep;
  reserve(layer, 1);
  EXPECT_EQ(layer.capacity(), 2 * KVCache::kStep);
  EXPECT_EQ(layer.buffer.keys.data.shape(), (mx::Shape{1, 2, 2 * KVCache::kStep, 8}));
}

TEST(KVCache, does_not_grow_while_there_is_room) {
  KVCache cache(1, kShape, {.dtype = mx::float32});
  reserve(cache.layer(0), 10);
  const auto id = cache.layer(0).buffer.keys.data.id();
  cache.layer(0).length = 10;
  reserve(cache.layer(0), KVCache::kStep - 10);
  EXPECT_EQ(cache.layer(0).buffer.keys.data.id(), id);
}

TEST(KVCache, growing_keeps_written_rows) {
  KVCache cache(1, kShape, {.dtype = mx::float32});
  LayerCache& layer = cache.layer(0);
  reserve(layer, KVCache::kStep);
  layer.buffer.keys.data = mx::random::normal(layer.buffer.keys.data.shape());
  const mx::array before = layer.buffer.keys.data;
  layer.length = KVCache::kStep;
  reserve(layer, 5);
  const mx::array kept = mx::slice(layer.buffer.keys.data, {0, 0, 0, 0}, before.shape());
  EXPECT_TRUE(mx::array_equal(kept, before).item<bool>());
}

TEST(KVCache, shrinking_keeps_the_rows_and_a_step_of_room) {
  KVCache cache(1, kShape, {.dtype = mx::float32});
  LayerCache& layer = cache.layer(0);
  reserve(layer, 4 * KVCache::kStep);
  layer.buffer.keys.data = mx::random::normal(layer.buffer.keys.data.shape());
  const mx::array before = layer.buffer.keys.data;
  layer.length = 4 * KVCache::kStep;
  KVCache fork = cache;
  fork.truncate(KVCache::kStep + 3);
  fork.shrink();
  EXPECT_EQ(fork.layer(0).capacity(), 2 * KVCache::kStep);
  EXPECT_EQ(fork.length(), KVCache::kStep + 3);
  const mx::Shape start = {0, 0, 0, 0};
  const mx::Shape stop = {1, 2, 2 * KVCache::kStep, 8};
  const mx::array kept = fork.layer(0).buffer.keys.data;
  EXPECT_TRUE(mx::array_equal(kept, mx::slice(before, start, stop)).item<bool>());
  EXPECT_EQ(kept.nbytes(), 2U * 2 * KVCache::kStep * 8 * 4);
  EXPECT_EQ(cache.layer(0).capacity(), 4 * KVCache::kStep) << "the original keeps its room";
  fork.shrink();  // nothing is left to give up
  EXPECT_EQ(fork.layer(0).capacity(), 2 * KVCache::kStep);
}

TEST(KVCache, bytes_count_the_capacity) {
  KVCache cache(3, kShape, {.dtype = mx::float16});
  for (int i = 0; i < 3; ++i) {
    reserve(cache.layer(i), 300);
  }
  uint64_t bytes = 0;
  for (const mx::array& array : cache.arrays()) {
    bytes += array.nbytes();
  }
  EXPECT_EQ(kv_cache_bytes(3, kShape, {.dtype = mx::float16}, 300), bytes);
}

}  // namespace
}  // namespace whimbrel::nn
