#pragma once

#include <vector>

#include "ops/ops.h"

namespace whimbrel::nn {

/// One layer's keys and values of one sequence. Grows in steps, so most appends write in place.
struct LayerCache {
  ops::KVBuffer buffer;
  int length = 0;  // rows written

  int capacity() const { return buffer.keys.data.shape(2); }
};

/// The keys and values of one sequence, all layers. A copy is a fork: the two go on independently.
class KVCache {
 public:
  /// Rows by which a full buffer grows.
  static constexpr int kStep = 256;

  KVCache(int layers, const ops::HeadShape& shape, const ops::KVFormat& format);

  LayerCache& layer(int index) { return layers_[static_cast<size_t>(index)]; }

  /// Rows of every layer after whole forwards.
  int length() const { return layers_.front().length; }

  /// Buffers of all layers, for evaluation.
  std::vector<mlx::core::array> arrays() const;

 private:
  std::vector<LayerCache> layers_;
};

/// Makes room for `rows` more rows; written rows stay.
void reserve(LayerCache& cache, int rows);

/// Bytes that a cache of `rows` rows takes.
uint64_t kv_cache_bytes(
    int layers, const ops::HeadShape& shape, const ops::KVFormat& format, int rows
);

}  // namespace whimbrel::nn
