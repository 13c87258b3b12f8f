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

  /// Of layers that hold rows already (kv_cache_file.h); `dropped` tokens stand no more in them.
  KVCache(std::vector<LayerCache> layers, int dropped);

  LayerCache& layer(int index) { return layers_[static_cast<size_t>(index)]; }
  const std::vector<LayerCache>& layers() const { return layers_; }

  /// Rows of every layer after whole forwards.
  int length() const { return layers_.front().length; }

  /// Tokens that were appended, those whose rows were dropped since included: the next one's index.
  int tokens() const { return length() + dropped_; }
  int dropped() const { return dropped_; }

  /// Takes out `count` rows from row `first` on. Rows behind them move up and keep the positions
  /// that they were rotated by.
  void drop(int first, int count);

  /// Goes back to the first `length` rows, as if the others had never been appended. A cache that
  /// rows were dropped from can't (std::logic_error): which tokens are left would be unclear.
  void truncate(int length);

  /// Gives up the room behind the rows, but for what rounds them up to kStep. Takes effect when
  /// the buffers are evaluated.
  void shrink();

  /// Buffers of all layers, for evaluation.
  std::vector<mlx::core::array> arrays() const;

 private:
  std::vector<LayerCache> layers_;
  int dropped_ = 0;
};

/// Makes room for `rows` more rows; written rows stay.
void reserve(LayerCache& cache, int rows);

/// Bytes that a cache of `rows` rows takes.
uint64_t kv_cache_bytes(
    int layers, const ops::HeadShape& shape, const ops::KVFormat& format, int rows
);

}  // namespace whimbrel::nn
