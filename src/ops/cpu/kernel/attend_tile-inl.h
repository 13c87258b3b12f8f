// Attention of many queries: a tile of them against block after block of keys, in float32. Scores
// and sums stay in scratch memory of the tile, so memory does not grow with the keys.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

// Queries and vectors of a product's tile of registers.
#if defined(__AVX512F__)
constexpr int kTileQueries = 6;
constexpr int kTileVectors = 4;
#elif defined(__AVX2__) || defined(__ARM_NEON)
constexpr int kTileQueries = 2;
constexpr int kTileVectors = 2;
#else
constexpr int kTileQueries = 2;
constexpr int kTileVectors = 1;
#endif

/// A tile's scratch memory.
struct TileScratch {
  explicit TileScratch(const AttendTile& t)
      : dims(padded_dims(t.head_dim)),
        keys(t.scratch),
        values(keys + kKeyBlock * dims),
        scores(values + kKeyBlock * dims),
        sums(scores + static_cast<size_t>(t.queries) * kKeyBlock),
        largest(sums + static_cast<size_t>(t.queries) * dims),
        weight(largest + t.queries),
        factor(weight + t.queries) {}

  int dims;
  float* keys;     // [kKeyBlock / 16][dims][16]
  float* values;   // [kKeyBlock][dims]
  float* scores;   // [queries][kKeyBlock], then exp(score - largest)
  float* sums;     // [queries][dims]
  float* largest;  // [queries], as the next
  float* weight;
  float* factor;  // by what a block's largest score changes earlier sums
};

/// A block of keys, 16 keys side by side for each number of a head; zeros behind `end`.
template <KVType type>
void pack_keys(const AttendTile& t, int first, int end, const TileScratch& to) {
  for (int panel = 0; panel < kKeyBlock / kLanes; ++panel) {
    for (int dim = 0; dim < to.dims; dim += kLanes) {
      F32 rows[kLanes];
      for (int r = 0; r < kLanes; ++r) {
        const int row = first + panel * kLanes + r;
        rows[r] = row < end ? load_row<type>(t.keys, row, dim, t.head_dim) : zero_f32();
      }
      transpose(rows);
      float* out = to.keys + (panel * to.dims + dim) * kLanes;
      for (int r = 0; r < kLanes; ++r) {
        store(out + r * kLanes, rows[r]);
      }
    }
  }
}

template <KVType type>
void pack_values(const AttendTile& t, int first, int end, const TileScratch& to) {
  for (int key = 0; key < kKeyBlock; ++key) {
    for (int dim = 0; dim < to.dims; dim += kLanes) {
      const bool exists = first + key < end;
      const F32 numbers =
          exists ? load_row<type>(t.values, first + key, dim, t.head_dim) : zero_f32();
      store(to.values + key * to.dims + dim, numbers);
    }
  }
}

inline void pack_block(const AttendTile& t, int first, int end, const TileScratch& to) {
  switch (t.keys.type) {
    case KVType::bf16:
      pack_keys<KVType::bf16>(t, first, end, to);
      return pack_values<KVType::bf16>(t, first, end, to);
    case KVType::f32:
      pack_keys<KVType::f32>(t, first, end, to);
      return pack_values<KVType::f32>(t, first, end, to);
    case KVType::codes:
      pack_keys<KVType::codes>(t, first, end, to);
      return pack_values<KVType::codes>(t, first, end, to);
  }
}

/// sums[query][vector] of `depth` products of a query's numbers and of vectors.
template <int queries, int vectors>
struct RegisterTile {
  F32 sums[queries * vectors];

  /// query: [queries][query_stride]; vector v of step i at vectors + v * vector_stride + i * step.
  WHIMBREL_INLINE void add(
      const float* query,
      int query_stride,
      const float* vector,
      int vector_stride,
      int step,
      int depth
  ) {
    for (int i = 0; i < depth; ++i) {
      F32 right[vectors];
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        right[v.value] = load(vector + i * step + v.value * vector_stride);
      });
      unroll<queries>([&](auto q) __attribute__((always_inline)) {
        const F32 left = splat(query[q.value * query_stride + i]);
        unroll<vectors>([&](auto v) __attribute__((always_inline)) {
          F32& total = sums[q.value * vectors + v.value];
          total = fma(left, right[v.value], total);
        });
      });
    }
  }
};

/// Scores of queries [first, end).
template <int queries = kTileQueries>
void score_queries(const AttendTile& t, const TileScratch& s, int first, int end) {
  constexpr int kPanels = kKeyBlock / kLanes;
  for (; first + queries <= end; first += queries) {
    for (int panel = 0; panel < kPanels; panel += kTileVectors) {
      RegisterTile<queries, kTileVectors> tile;
      unroll<queries * kTileVectors>([&](auto i) __attribute__((always_inline)) {
        tile.sums[i.value] = zero_f32();
      });
      const float* keys = s.keys + panel * s.dims * kLanes;
      const float* q = t.q + static_cast<size_t>(first) * s.dims;
      tile.add(q, s.dims, keys, s.dims * kLanes, kLanes, t.head_dim);
      float* out = s.scores + static_cast<size_t>(first) * kKeyBlock + panel * kLanes;
      unroll<queries * kTileVectors>([&](auto i) __attribute__((always_inline)) {
        constexpr int kQuery = i.value / kTileVectors;
        store(out + kQuery * kKeyBlock + i.value % kTileVectors * kLanes, tile.sums[i.value]);
      });
    }
  }
  if constexpr (queries > 1) {
    if (first < end) {
      score_queries<queries - 1>(t, s, first, end);
    }
  }
}

constexpr float kLaneNumbers[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/// Scores of one query, of which the first `count` count, become exp(score - largest).
inline void soften_query(const TileScratch& s, int query, int count) {
  constexpr int kVectors = kKeyBlock / kLanes;
  const F32 lane_numbers = load(kLaneNumbers);
  float* scores = s.scores + static_cast<size_t>(query) * kKeyBlock;
  F32 top = splat(s.largest[query]);
  for (int v = 0; v < kVectors; ++v) {
    const F32 seen = splat(static_cast<float>(count - v * kLanes));
    const F32 score = where_less(lane_numbers, seen, load(scores + v * kLanes), splat(kNoScore));
    store(scores + v * kLanes, score);
    top = maximum(top, score);
  }
  const F32 highest = splat(largest(top));
  F32 weight = zero_f32();
  for (int v = 0; v < kVectors; ++v) {
    const F32 p = exp(sub(load(scores + v * kLanes), highest));
    store(scores + v * kLanes, p);
    weight = add(weight, p);
  }
  float factor[kLanes];
  store(factor, exp(sub(splat(s.largest[query]), highest)));
  s.factor[query] = factor[0];
  s.largest[query] = largest(top);
  s.weight[query] = s.weight[query] * factor[0] + sum(weight);
}

/// sums = factor * sums + the block's values by weight, for `vectors` vectors of a head from `dim`.
template <int queries, int vectors>
WHIMBREL_INLINE void add_weighted(const TileScratch& s, int first, int dim, int keys) {
  RegisterTile<queries, vectors> tile;
  float* sums = s.sums + static_cast<size_t>(first) * s.dims + dim;
  unroll<queries * vectors>([&](auto i) __attribute__((always_inline)) {
    constexpr int kQuery = i.value / vectors;
    const F32 before = load(sums + kQuery * s.dims + i.value % vectors * kLanes);
    tile.sums[i.value] = mul(before, splat(s.factor[first + kQuery]));
  });
  const float* weights = s.scores + static_cast<size_t>(first) * kKeyBlock;
  tile.add(weights, kKeyBlock, s.values + dim, kLanes, s.dims, keys);
  unroll<queries * vectors>([&](auto i) __attribute__((always_inline)) {
    constexpr int kQuery = i.value / vectors;
    store(sums + kQuery * s.dims + i.value % vectors * kLanes, tile.sums[i.value]);
  });
}

/// Adds a block's values to the sums of queries [first, end).
template <int queries = kTileQueries>
void add_values(const TileScratch& s, int first, int end, int keys) {
  for (; first + queries <= end; first += queries) {
    int dim = 0;
    for (; dim + kTileVectors * kLanes <= s.dims; dim += kTileVectors * kLanes) {
      add_weighted<queries, kTileVectors>(s, first, dim, keys);
    }
    for (; dim < s.dims; dim += kLanes) {
      add_weighted<queries, 1>(s, first, dim, keys);
    }
  }
  if constexpr (queries > 1) {
    if (first < end) {
      add_values<queries - 1>(s, first, end, keys);
    }
  }
}

inline void finish_query(const AttendTile& t, const TileScratch& s, int query) {
  const float* sums = s.sums + static_cast<size_t>(query) * s.dims;
  float* out = t.out + static_cast<size_t>(query / t.group) * t.row_stride +
               static_cast<size_t>(query % t.group) * t.head_dim;
  const F32 weight = splat(s.weight[query]);
  for (int dim = 0; dim < t.head_dim; dim += kLanes) {
    store_dims(out + dim, div(load(sums + dim), weight), t.head_dim - dim);
  }
}

inline void attend_tile(const AttendTile& t) {
  const TileScratch s(t);
  for (int query = 0; query < t.queries; ++query) {
    s.largest[query] = kNoScore;
    s.weight[query] = 0.0F;
  }
  for (size_t i = 0; i < static_cast<size_t>(t.queries) * s.dims; ++i) {
    s.sums[i] = 0.0F;
  }
  const int end = t.visible_to(t.queries - 1);
  for (int key = 0; key < end; key += kKeyBlock) {
    int first = 0;
    while (t.visible_to(first) <= key) {
      first += t.group;
    }
    pack_block(t, key, end, s);
    score_queries(t, s, first, t.queries);
    for (int query = first; query < t.queries; ++query) {
      soften_query(s, query, t.visible_to(query) - key);
    }
    add_values(s, first, t.queries, end - key < kKeyBlock ? end - key : kKeyBlock);
  }
  for (int query = 0; query < t.queries; ++query) {
    finish_query(t, s, query);
  }
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
