#include "nn/kv_cache.h"

#include <mlx/mlx.h>

namespace whimbrel::nn {

namespace mx = mlx::core;

namespace {

int round_up(int rows, int step) {
  return (rows + step - 1) / step * step;
}

mx::array grow(const mx::array& buffer, int capacity) {
  mx::Shape shape = buffer.shape();
  shape[2] = capacity - buffer.shape(2);
  return mx::concatenate({buffer, mx::zeros(shape, buffer.dtype())}, 2);
}

}  // namespace

KVCache::KVCache(int layers, const ops::HeadShape& shape, mx::Dtype dtype) {
  const mx::Shape empty = {1, shape.kv_heads, 0, shape.head_dim};
  for (int i = 0; i < layers; ++i) {
    layers_.push_back({{mx::zeros(empty, dtype), mx::zeros(empty, dtype)}});
  }
}

std::vector<mx::array> KVCache::arrays() const {
  std::vector<mx::array> arrays;
  for (const LayerCache& layer : layers_) {
    arrays.push_back(layer.buffer.keys);
    arrays.push_back(layer.buffer.values);
  }
  return arrays;
}

void reserve(LayerCache& cache, int rows) {
  const int needed = cache.length + rows;
  if (needed <= cache.capacity()) {
    return;
  }
  const int capacity = round_up(needed, KVCache::kStep);
  cache.buffer = {grow(cache.buffer.keys, capacity), grow(cache.buffer.values, capacity)};
}

uint64_t kv_cache_bytes(int layers, const ops::HeadShape& shape, mx::Dtype dtype, int rows) {
  const auto capacity = static_cast<uint64_t>(round_up(rows, KVCache::kStep));
  return 2 * static_cast<uint64_t>(layers) * static_cast<uint64_t>(shape.kv_heads) * capacity *
         static_cast<uint64_t>(shape.head_dim) * mx::size_of(dtype);
}

}  // namespace whimbrel::nn
