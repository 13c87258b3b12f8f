#include "ops/cpu/attend.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace whimbrel::ops::cpu {

namespace {

using Task = AttendWorkspace::Task;

size_t size(int n) {
  return static_cast<size_t>(n);
}

int ceil_div(int a, int b) {
  return (a + b - 1) / b;
}

float score_scale(int head_dim) {
  return 1.0F / std::sqrt(static_cast<float>(head_dim));
}

void check_head_dim(int head_dim) {
  if (head_dim % 8 != 0 || head_dim <= 0 || head_dim > kLargestHeadDim) {
    throw std::logic_error("[attend] got heads of a size that its kernels do not know");
  }
}

/// One call of attend().
class AttendCall {
 public:
  AttendCall(const Attention& a, const Kernels& kernels, AttendWorkspace& workspace)
      : a_(a),
        kernels_(kernels),
        workspace_(workspace),
        group_(a.heads / a.kv_heads),
        dims_(padded_dims(a.head_dim)) {}

  void run(ThreadPool& pool) {
    plan(pool.threads());
    pool.parallel_for(prefill_rows_, [this](int row, int thread) { prepare_prefill(row, thread); });
    const std::vector<Task>& tasks = workspace_.tasks();
    pool.parallel_for(static_cast<int>(tasks.size()), [&](int task, int thread) {
      if (tasks[size(task)].split) {
        attend_split(tasks[size(task)], thread);
      } else {
        attend_tile(tasks[size(task)], thread);
      }
    });
  }

 private:
  // ---- the plan

  static int splits_of(const AttendSequence& s) { return ceil_div(s.cached + s.rows, kSplitKeys); }

  int tile_rows() const { return std::max(1, kernels_.tile_queries / group_); }

  void plan(int threads) {
    workspace_.tasks().clear();
    prefill_rows_ = 0;
    size_t parts = 0;  // rows of results of splits
    size_t tasks = 0;
    for (size_t i = 0; i < a_.sequences.size(); ++i) {
      const AttendSequence& s = a_.sequences[i];
      if (!s.prefill) {
        plan_splits(static_cast<int>(i));
        // By capacity, not by what is cached: memory need not grow while tokens are generated.
        const size_t most = size(a_.kv_heads) * size(ceil_div(s.capacity, kSplitKeys));
        parts += most * size(s.rows);
        tasks += most;
      } else {
        plan_tiles(static_cast<int>(i));
        prefill_rows_ += s.rows;
      }
    }
    workspace_.tasks().reserve(tasks);
    prepared_ = workspace_.shared(0, size(prefill_rows_) * size(a_.heads) * size(dims_));
    parts_ = workspace_.shared(1, parts * part_floats());
    finished_ = workspace_.counters(a_.sequences.size() * size(a_.kv_heads));
    const size_t few = size(group_ + 1) * size(dims_);
    const size_t many = attend_tile_floats(tile_rows() * group_, a_.head_dim);
    workspace_.reserve_threads(threads, std::max(few, prefill_rows_ > 0 ? many : 0));
  }

  void plan_splits(int sequence) {
    const AttendSequence& s = a_.sequences[size(sequence)];
    for (int split = 0; split < splits_of(s); ++split) {
      const int first = split * kSplitKeys;
      const int end = std::min(first + kSplitKeys, s.cached + s.rows);
      for (int head = 0; head < a_.kv_heads; ++head) {
        workspace_.tasks().push_back({sequence, head, first, end, true, split});
      }
    }
  }

  void plan_tiles(int sequence) {
    const AttendSequence& s = a_.sequences[size(sequence)];
    const int tiles = ceil_div(s.rows, tile_rows());
    for (int tile = tiles - 1; tile >= 0; --tile) {  // those that see most keys first
      const int first = tile * tile_rows();
      const int end = std::min(first + tile_rows(), s.rows);
      for (int head = 0; head < a_.kv_heads; ++head) {
        workspace_.tasks().push_back({sequence, head, first, end, false, 0});
      }
    }
  }

  // ---- heads of a row

  void prepare_q(const AttendSequence& s, int row, int head, float* out) const {
    const float* x = a_.q + size(s.first_row + row) * a_.q_stride + size(head) * size(a_.head_dim);
    kernels_.prepare_head(head_of(s, row, x, a_.q_norm, score_scale(a_.head_dim), out));
  }

  PrepareHead head_of(
      const AttendSequence& s,
      int row,
      const float* x,
      const HeadNorm& norm,
      float scale,
      float* out
  ) const {
    const size_t angles = size(row) * size(a_.head_dim / 2);
    return {
        .x = x,
        .weight = norm.weight,
        .cos = s.cos + angles,
        .sin = s.sin + angles,
        .out = out,
        .head_dim = a_.head_dim,
        .eps = norm.eps,
        .scale = scale
    };
  }

  /// Key and value of a row into the cache; scratch [dims].
  void append(const AttendSequence& s, int row, int head, float* scratch) const {
    const size_t at = size(head) * size(a_.head_dim);
    const float* k = a_.k + size(s.first_row + row) * a_.k_stride + at;
    kernels_.prepare_head(head_of(s, row, k, a_.k_norm, 1.0F, scratch));
    store(s, s.keys, row, head, scratch);
    store(s, s.values, row, head, a_.v + size(s.first_row + row) * a_.v_stride + at);
  }

  void store(
      const AttendSequence& s, const KVCache& cache, int row, int head, const float* x
  ) const {
    const size_t place = size(head) * size(s.capacity) + size(s.cached + row);
    StoreKVRow stored = {.x = x, .head_dim = a_.head_dim, .group_size = a_.group_size};
    stored.data = cache.data + place * row_bytes();
    if (a_.group_size != 0) {
      const size_t groups = size(a_.head_dim / a_.group_size);
      stored.scales = cache.scales + place * groups;
      stored.offsets = cache.offsets + place * groups;
    }
    kernels_.store_kv_row(stored);
  }

  size_t row_bytes() const { return size(a_.head_dim) * (a_.group_size != 0 ? 1 : 2); }

  KVHead head_of_cache(const AttendSequence& s, const KVCache& cache, int head) const {
    const size_t place = size(head) * size(s.capacity);
    KVHead rows = {.data = cache.data + place * row_bytes(), .row_bytes = row_bytes()};
    if (a_.group_size != 0) {
      const size_t groups = size(a_.head_dim / a_.group_size);
      rows.type = KVType::codes;
      rows.scales = cache.scales + place * groups;
      rows.offsets = cache.offsets + place * groups;
      rows.group_size = a_.group_size;
    }
    return rows;
  }

  // ---- a prompt's rows: all are prepared, [kv head][row][group][dims] a sequence, then tiles

  float* prepared_rows(int sequence, int head) const {
    size_t before = 0;
    for (int i = 0; i < sequence; ++i) {
      before += a_.sequences[size(i)].prefill ? size(a_.sequences[size(i)].rows) : 0;
    }
    const size_t rows = size(a_.sequences[size(sequence)].rows);
    return prepared_ + (before * size(a_.heads) + size(head) * rows * size(group_)) * size(dims_);
  }

  void prepare_prefill(int index, int thread) {
    int sequence = 0;
    for (; !a_.sequences[size(sequence)].prefill || index >= a_.sequences[size(sequence)].rows;
         ++sequence) {
      index -= a_.sequences[size(sequence)].prefill ? a_.sequences[size(sequence)].rows : 0;
    }
    const AttendSequence& s = a_.sequences[size(sequence)];
    for (int head = 0; head < a_.kv_heads; ++head) {
      float* q = prepared_rows(sequence, head) + size(index) * size(group_) * size(dims_);
      for (int i = 0; i < group_; ++i) {
        prepare_q(s, index, head * group_ + i, q + size(i) * size(dims_));
      }
      append(s, index, head, workspace_.of_thread(thread));
    }
  }

  void attend_tile(const Task& task, int thread) {
    const AttendSequence& s = a_.sequences[size(task.sequence)];
    const size_t out_row = size(s.first_row + task.first);
    kernels_.attend_tile({
        .q = prepared_rows(task.sequence, task.head) + size(task.first) * size(group_ * dims_),
        .queries = (task.end - task.first) * group_,
        .group = group_,
        .head_dim = a_.head_dim,
        .keys = head_of_cache(s, s.keys, task.head),
        .values = head_of_cache(s, s.values, task.head),
        .visible = s.cached + task.first + 1,
        .visible_step = 1,
        .out = a_.out + out_row * a_.out_stride + size(task.head * group_ * a_.head_dim),
        .row_stride = a_.out_stride,
        .scratch = workspace_.of_thread(thread),
    });
  }

  // ---- an answer's rows: a split of the keys appends the rows that fall into it, then all rows
  // attend to it; who finishes a head's last split puts its results together

  /// Results of a split and row: values [group][dims], largest [group], weights [group].
  size_t part_floats() const { return size(group_) * size(dims_ + 2); }

  /// Results of the splits of a row: all values, then all largest, then all weights.
  float* parts_of(int sequence, int head, int row) const {
    size_t before = 0;
    for (int i = 0; i < sequence; ++i) {
      const AttendSequence& s = a_.sequences[size(i)];
      before += s.prefill ? 0 : size(a_.kv_heads) * size(s.rows) * size(splits_of(s));
    }
    const AttendSequence& s = a_.sequences[size(sequence)];
    const size_t rows = size(head) * size(s.rows) + size(row);
    return parts_ + (before + rows * size(splits_of(s))) * part_floats();
  }

  void attend_split(const Task& task, int thread) {
    const AttendSequence& s = a_.sequences[size(task.sequence)];
    float* q = workspace_.of_thread(thread);
    for (int row = 0; row < s.rows; ++row) {
      const int position = s.cached + row;
      if (position >= task.first && position < task.end) {
        append(s, row, task.head, q + size(group_) * size(dims_));
      }
    }
    for (int row = 0; row < s.rows; ++row) {
      if (s.cached + row >= task.first) {
        attend_row(task, row, q);
      }
    }
    std::atomic<int>& finished = finished_[size(task.sequence * a_.kv_heads + task.head)];
    if (finished.fetch_add(1, std::memory_order_acq_rel) + 1 == splits_of(s)) {
      combine(task);
    }
  }

  void attend_row(const Task& task, int row, float* q) {
    const AttendSequence& s = a_.sequences[size(task.sequence)];
    for (int i = 0; i < group_; ++i) {
      prepare_q(s, row, task.head * group_ + i, q + size(i) * size(dims_));
    }
    float* parts = parts_of(task.sequence, task.head, row);
    float* largest = parts + size(splits_of(s)) * size(group_) * size(dims_);
    float* weights = largest + size(splits_of(s)) * size(group_);
    kernels_.attend_keys({
        .q = q,
        .queries = group_,
        .head_dim = a_.head_dim,
        .keys = head_of_cache(s, s.keys, task.head),
        .values = head_of_cache(s, s.values, task.head),
        .first = task.first,
        .end = std::min(task.end, s.cached + row + 1),
        .out = parts + size(task.order) * size(group_) * size(dims_),
        .largest = largest + size(task.order) * size(group_),
        .weight = weights + size(task.order) * size(group_),
    });
  }

  void combine(const Task& task) const {
    const AttendSequence& s = a_.sequences[size(task.sequence)];
    for (int row = 0; row < s.rows; ++row) {
      const float* parts = parts_of(task.sequence, task.head, row);
      const float* largest = parts + size(splits_of(s)) * size(group_) * size(dims_);
      kernels_.combine_parts({
          .outs = parts,
          .largest = largest,
          .weights = largest + size(splits_of(s)) * size(group_),
          .parts = ceil_div(s.cached + row + 1, kSplitKeys),
          .queries = group_,
          .head_dim = a_.head_dim,
          .out = a_.out + size(s.first_row + row) * a_.out_stride +
                 size(task.head * group_) * size(a_.head_dim),
      });
    }
  }

  const Attention& a_;
  const Kernels& kernels_;
  AttendWorkspace& workspace_;
  int group_;  // query heads that share keys and values
  int dims_;
  int prefill_rows_ = 0;
  float* prepared_ = nullptr;
  float* parts_ = nullptr;
  std::atomic<int>* finished_ = nullptr;
};

/// One call of attend_segments(). Queries and keys are rotated into [2][head][row][dims].
class SegmentCall {
 public:
  SegmentCall(const SegmentAttention& a, const Kernels& kernels, AttendWorkspace& workspace)
      : a_(a),
        kernels_(kernels),
        workspace_(workspace),
        rows_(a.cu_seqlens.back()),
        query_end_(a.first_query + a.queries),
        dims_(padded_dims(a.head_dim)) {}

  void run(ThreadPool& pool) {
    plan(pool.threads());
    const std::vector<Task>& tasks = workspace_.tasks();
    const int first = a_.cu_seqlens[size(tasks.front().sequence)];
    const int seen = a_.cu_seqlens[size(tasks.back().sequence) + 1] - first;
    constexpr int kRows = 64;
    pool.parallel_for((seen + kRows - 1) / kRows, [&](int block, int) {
      prepare_rows(first + block * kRows, first + std::min(seen, (block + 1) * kRows));
    });
    pool.parallel_for(static_cast<int>(tasks.size()), [&](int task, int thread) {
      attend_tile(tasks[size(task)], thread);
    });
  }

 private:
  void plan(int threads) {
    const int tile = kernels_.tile_queries;
    workspace_.tasks().clear();
    for (size_t i = 0; i + 1 < a_.cu_seqlens.size(); ++i) {
      const int begin = std::max(a_.cu_seqlens[i], a_.first_query);
      const int behind = std::min(a_.cu_seqlens[i + 1], query_end_);
      for (int head = 0; head < a_.heads; ++head) {
        for (int first = begin; first < behind; first += tile) {
          const int end = std::min(first + tile, behind);
          workspace_.tasks().push_back({static_cast<int>(i), head, first, end, false, 0});
        }
      }
    }
    prepared_ = workspace_.shared(0, 2 * size(a_.heads) * size(rows_) * size(dims_));
    workspace_.reserve_threads(threads, attend_tile_floats(tile, a_.head_dim));
  }

  /// kind: 0 query, 1 key.
  float* prepared(int kind, int head, int row) const {
    return prepared_ + (size(kind * a_.heads + head) * size(rows_) + size(row)) * size(dims_);
  }

  size_t qkv_stride() const { return 3 * size(a_.heads) * size(a_.head_dim); }

  void prepare_rows(int begin, int end) {
    for (int head = 0; head < a_.heads; ++head) {
      for (int row = begin; row < end; ++row) {
        if (a_.first_query <= row && row < query_end_) {
          prepare(0, head, row, score_scale(a_.head_dim));
        }
        prepare(1, head, row, 1.0F);
      }
    }
  }

  void prepare(int kind, int head, int row, float scale) {
    const size_t angles = size(row) * size(a_.head_dim / 2);
    kernels_.prepare_head({
        .x = a_.qkv + size(row) * qkv_stride() + size(kind * a_.heads + head) * size(a_.head_dim),
        .cos = a_.cos + angles,
        .sin = a_.sin + angles,
        .out = prepared(kind, head, row),
        .head_dim = a_.head_dim,
        .scale = scale,
    });
  }

  static KVHead floats(const float* first, size_t stride) {
    return {
        .data = reinterpret_cast<const std::byte*>(first),
        .row_bytes = stride * sizeof(float),
        .type = KVType::f32
    };
  }

  void attend_tile(const Task& task, int thread) {
    const int first = a_.cu_seqlens[size(task.sequence)];
    const int end = a_.cu_seqlens[size(task.sequence) + 1];
    const size_t value = size(2 * a_.heads + task.head) * size(a_.head_dim);
    const size_t out_stride = size(a_.heads) * size(a_.head_dim);
    kernels_.attend_tile({
        .q = prepared(0, task.head, task.first),
        .queries = task.end - task.first,
        .head_dim = a_.head_dim,
        .keys = floats(prepared(1, task.head, first), size(dims_)),
        .values = floats(a_.qkv + size(first) * qkv_stride() + value, qkv_stride()),
        .visible = end - first,
        .out = a_.out + size(task.first - a_.first_query) * out_stride +
               size(task.head) * size(a_.head_dim),
        .row_stride = out_stride,
        .scratch = workspace_.of_thread(thread),
    });
  }

  const SegmentAttention& a_;
  const Kernels& kernels_;
  AttendWorkspace& workspace_;
  int rows_;
  int query_end_;
  int dims_;
  float* prepared_ = nullptr;
};

}  // namespace

void attend(
    const Attention& a, const Kernels& kernels, ThreadPool& pool, AttendWorkspace& workspace
) {
  check_head_dim(a.head_dim);
  AttendCall(a, kernels, workspace).run(pool);
}

void attend_segments(
    const SegmentAttention& a, const Kernels& kernels, ThreadPool& pool, AttendWorkspace& workspace
) {
  check_head_dim(a.head_dim);
  if (a.queries > 0) {
    SegmentCall(a, kernels, workspace).run(pool);
  }
}

}  // namespace whimbrel::ops::cpu
