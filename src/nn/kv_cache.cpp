#include "nn/kv_cache.h"

#include <mlx/mlx.h>

#include <stdexcept>

namespace whimbrel::nn {

namespace mx = mlx::core;

namespace {

int round_up(int rows, int step) {
  return (rows + step - 1) / step * step;
}

ops::KVRows empty_rows(const ops::HeadShape& shape, const ops::KVFormat& format) {
  const auto empty = [&shape](int width, mx::Dtype dtype) {
    return mx::zeros({1, shape.kv_heads, 0, width}, dtype);
  };
  if (format.bits == 0) {
    return {empty(shape.head_dim, format.dtype)};
  }
  const int groups = shape.head_dim / format.group_size;
  return {
      empty(shape.head_dim * format.bits / 32, mx::uint32),
      empty(groups, format.dtype),
      empty(groups, format.dtype)
  };
}

mx::array grow(const mx::array& buffer, int capacity) {
  mx::Shape shape = buffer.shape();
  shape[2] = capacity - buffer.shape(2);
  return mx::concatenate({buffer, mx::zeros(shape, buffer.dtype())}, 2);
}

ops::KVRows grow(const ops::KVRows& rows, int capacity) {
  ops::KVRows grown{grow(rows.data, capacity)};
  if (rows.scales) {
    grown.scales = grow(*rows.scales, capacity);
    grown.offsets = grow(*rows.offsets, capacity);
  }
  return grown;
}

/// Rows [0, first) and [first + count, length), with room for as many rows as before.
mx::array without(const mx::array& buffer, int first, int count, int length) {
  const mx::Shape start = {0, 0, first + count, 0};
  mx::Shape stop = buffer.shape();
  stop[2] = length;
  const mx::array behind = mx::slice(buffer, start, stop);
  const mx::Shape to = {0, 0, first, 0};
  stop[2] = length - count;
  return mx::slice_update(buffer, behind, to, stop);
}

ops::KVRows without(const ops::KVRows& rows, int first, int count, int length) {
  ops::KVRows kept{without(rows.data, first, count, length)};
  if (rows.scales) {
    kept.scales = without(*rows.scales, first, count, length);
    kept.offsets = without(*rows.offsets, first, count, length);
  }
  return kept;
}

mx::array first_of(const mx::array& buffer, int capacity) {
  mx::Shape stop = buffer.shape();
  stop[2] = capacity;
  const mx::Shape start(stop.size(), 0);
  return mx::contiguous(mx::slice(buffer, start, stop));
}

void shrink(ops::KVRows& rows, int capacity) {
  rows.data = first_of(rows.data, capacity);
  if (rows.scales) {
    rows.scales = first_of(*rows.scales, capacity);
    rows.offsets = first_of(*rows.offsets, capacity);
  }
}

void append_arrays(std::vector<mx::array>& arrays, const ops::KVRows& rows) {
  arrays.push_back(rows.data);
  if (rows.scales) {
    arrays.push_back(*rows.scales);
    arrays.push_back(*rows.offsets);
  }
}

/// Bytes of one head's keys or values at one position.
uint64_t head_bytes(const ops::HeadShape& shape, const ops::KVFormat& format) {
  const auto head_dim = static_cast<uint64_t>(shape.head_dim);
  if (format.bits == 0) {
    return head_dim * mx::size_of(format.dtype);
  }
  const uint64_t groups = head_dim / static_cast<uint64_t>(format.group_size);
  return head_dim * static_cast<uint64_t>(format.bits) / 8 + 2 * groups * mx::size_of(format.dtype);
}

}  // namespace

KVCache::KVCache(int layers, const ops::HeadShape& shape, const ops::KVFormat& format) {
  for (int i = 0; i < layers; ++i) {
    layers_.push_back({{empty_rows(shape, format), empty_rows(shape, format), format}});
  }
}

KVCache::KVCache(std::vector<LayerCache> layers, int dropped)
    : layers_(std::move(layers)), dropped_(dropped) {}

void KVCache::drop(int first, int count) {
  if (first < 0 || count < 0 || first + count > length()) {
    throw std::logic_error("[KVCache] got rows to drop that are not there");
  }
  for (LayerCache& layer : layers_) {
    layer.buffer.keys = without(layer.buffer.keys, first, count, layer.length);
    layer.buffer.values = without(layer.buffer.values, first, count, layer.length);
    layer.length -= count;
  }
  dropped_ += count;
}

void KVCache::truncate(int length) {
  if (dropped_ != 0 || length < 0 || length > this->length()) {
    throw std::logic_error("[KVCache] got a length to go back to that it never had");
  }
  for (LayerCache& layer : layers_) {
    layer.length = length;
  }
}

void KVCache::shrink() {
  for (LayerCache& layer : layers_) {
    const int capacity = round_up(layer.length, kStep);
    if (capacity < layer.capacity()) {
      nn::shrink(layer.buffer.keys, capacity);
      nn::shrink(layer.buffer.values, capacity);
    }
  }
}

std::vector<mx::array> KVCache::arrays() const {
  std::vector<mx::array> arrays;
  for (const LayerCache& layer : layers_) {
    append_arrays(arrays, layer.buffer.keys);
    append_arrays(arrays, layer.buffer.values);
  }
  return arrays;
}

void reserve(LayerCache& cache, int rows) {
  const int needed = cache.length + rows;
  if (needed <= cache.capacity()) {
    return;
  }
  const int capacity = round_up(needed, KVCache::kStep);
  cache.buffer.keys = grow(cache.buffer.keys, capacity);
  cache.buffer.values = grow(cache.buffer.values, capacity);
}

uint64_t kv_cache_bytes(
    int layers, const ops::HeadShape& shape, const ops::KVFormat& format, int rows
) {
  const auto capacity = static_cast<uint64_t>(round_up(rows, KVCache::kStep));
  return 2 * static_cast<uint64_t>(layers) * static_cast<uint64_t>(shape.kv_heads) * capacity *
         head_bytes(shape, format);
}

}  // namespace whimbrel::nn
