#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/scratch.h"

namespace whimbrel::ops::cpu {

/// Keys or values of one layer and sequence, [kv_heads][capacity][head_dim] bfloat16, or uint8
/// codes with bfloat16 scales and offsets [kv_heads][capacity][head_dim / group_size].
struct KVCache {
  std::byte* data = nullptr;
  uint16_t* scales = nullptr;
  uint16_t* offsets = nullptr;
};

/// Consecutive rows of one sequence. Their keys and values become rows `cached` and following of
/// its cache. Rows of a prompt are computed in tiles; those of an answer each on its own, with its
/// keys split among threads. Either way a row's result has the same bits whatever the others are.
struct AttendSequence {
  int first_row = 0;  // in q, k, v and out
  int rows = 0;
  int cached = 0;
  int capacity = 0;  // rows of the cache, at least cached + rows
  bool prefill = false;
  KVCache keys = {};
  KVCache values = {};
  const float* cos = nullptr;  // [rows][head_dim / 2]
  const float* sin = nullptr;
};

/// An RMS norm over head_dim; no weight, no norm.
struct HeadNorm {
  const float* weight = nullptr;
  float eps = 0;
};

/// One layer's attention for the rows of some sequences: norms, rope, append, attention of each row
/// to the rows of its sequence up to its own.
struct Attention {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;          // a multiple of 8, at most kLargestHeadDim
  int group_size = 0;        // of the caches' codes; 0: bfloat16
  const float* q = nullptr;  // [rows][heads * head_dim], a row every q_stride floats
  const float* k = nullptr;  // [rows][kv_heads * head_dim]
  const float* v = nullptr;
  size_t q_stride = 0;
  size_t k_stride = 0;
  size_t v_stride = 0;
  HeadNorm q_norm = {};
  HeadNorm k_norm = {};
  std::span<const AttendSequence> sequences = {};
  float* out = nullptr;  // [rows][heads * head_dim]
  size_t out_stride = 0;
};

/// Attention of a vision tower: rows of a segment see each other and nothing else.
struct SegmentAttention {
  const float* qkv = nullptr;  // [rows][3][heads][head_dim]
  int heads = 0;
  int head_dim = 0;            // a multiple of 8, at most kLargestHeadDim
  const float* cos = nullptr;  // [rows][head_dim / 2]
  const float* sin = nullptr;
  std::span<const int> cu_seqlens = {};  // segment borders from 0 to rows
  int first_query = 0;                   // of the rows whose output is wanted
  int queries = 0;
  float* out = nullptr;  // [queries][heads * head_dim]
};

/// Memory that attention works in. It grows to what the largest call needs and is then kept: no
/// allocation in a call like one before.
class AttendWorkspace {
 public:
  /// A piece of the work: a split of the keys for a few rows, or a tile of many rows.
  struct Task {
    int sequence = 0;  // or segment
    int head = 0;      // with its own keys and values
    int first = 0;     // key, or row
    int end = 0;
    bool split = false;
    int order = 0;  // of a split among those of its head
  };

  std::vector<Task>& tasks() { return tasks_; }
  /// `count` floats shared by all threads, [0] prepared rows, [1] results of splits.
  float* shared(int purpose, size_t count) { return shared_[purpose].of<float>(count); }
  /// Room for `count` floats on each of `threads` threads.
  void reserve_threads(int threads, size_t count);
  float* of_thread(int thread) { return threads_[static_cast<size_t>(thread)].of<float>(0); }
  /// `count` counters at 0.
  std::atomic<int>* counters(size_t count);

  /// Bytes of the large parts.
  size_t bytes() const;

 private:
  std::vector<Task> tasks_;
  Scratch shared_[2];
  std::vector<Scratch> threads_;
  std::unique_ptr<std::atomic<int>[]> counters_;
  size_t counters_count_ = 0;
};

/// Keys of a split. A constant, so that results depend on no number of threads.
constexpr int kSplitKeys = 256;

/// Computes a.out and appends to the caches.
void attend(
    const Attention& a, const Kernels& kernels, ThreadPool& pool, AttendWorkspace& workspace
);

void attend_segments(
    const SegmentAttention& a, const Kernels& kernels, ThreadPool& pool, AttendWorkspace& workspace
);

}  // namespace whimbrel::ops::cpu
