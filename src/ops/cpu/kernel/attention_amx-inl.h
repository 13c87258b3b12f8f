// Attention on tiles of bfloat16, sums and softmax in float32. A tile's rows are 16 keys or
// queries, its columns 16 others. What is multiplied is packed so that no row's result depends on
// another.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

constexpr int kTileSide = 16;   // rows of a tile, and float32 columns
constexpr int kTileDepth = 32;  // bfloat16 numbers of a row
constexpr size_t kTileRowBytes = 64;
constexpr int kTileBytes = 1024;

WHIMBREL_INLINE int tile_chunks(int head_dim) {
  return (head_dim + kTileDepth - 1) / kTileDepth;
}

/// The upper half of a float's bits, as a float.
WHIMBREL_INLINE F32 upper_half(F32 x) {
  return {
      _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x.v), _mm512_set1_epi32(-65536)))
  };
}

/// Two vectors as 32 bfloat16, to the nearest.
WHIMBREL_INLINE F32 join_bf16(F32 low, F32 high) {
  const __m512bh pairs = _mm512_cvtne2ps_pbh(high.v, low.v);
  F32 joined;
  __builtin_memcpy(&joined, &pairs, sizeof(joined));
  return joined;
}

/// 32 numbers of a row as bfloat16, zeros from head_dim on.
template <KVType type>
WHIMBREL_INLINE F32 load_bf16_row(const KVHead& head, int row, int dim, int head_dim) {
  if constexpr (type == KVType::bf16) {
    const uint16_t* numbers = KVRows<type>::numbers(head, row) + dim;
    const int count = head_dim - dim;
    const __mmask32 mask = count >= kTileDepth ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
    return {_mm512_castsi512_ps(_mm512_maskz_loadu_epi16(mask, numbers))};
  } else {
    const bool both = dim + kLanes < head_dim;
    const F32 low = load_row<type>(head, row, dim, head_dim);
    return join_bf16(low, both ? load_row<type>(head, row, dim + kLanes, head_dim) : zero_f32());
  }
}

/// Two rows of 32 bfloat16 as pairs of a column: dimensions 8 l + {0..3} in `low`, 8 l + {4..7} in
/// `high`, l = 0..3.
struct ColumnPairs {
  __m512i low;
  __m512i high;
};

WHIMBREL_INLINE ColumnPairs pair_rows(F32 first, F32 second) {
  const __m512i a = _mm512_castps_si512(first.v);
  const __m512i b = _mm512_castps_si512(second.v);
  return {_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)};
}

/// Undoes the order of ColumnPairs: 32 sums in the order of a head.
WHIMBREL_INLINE void store_in_order(float* out, F32 low, F32 high, int count) {
  const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
  store_dims(out, {_mm512_permutex2var_ps(low.v, first, high.v)}, count);
  if (count > kLanes) {
    store_dims(out + kLanes, {_mm512_permutex2var_ps(low.v, second, high.v)}, count - kLanes);
  }
}

// ---- One row

/// Three to eight heads over bfloat16 keys. Queries and weights are each the sum of two bfloat16,
/// the larger in columns or rows 0 to 7, the rest in 8 to 15: exact to 2^-16.
class TiledKeys {
 public:
  explicit TiledKeys(const AttendKeys& a) : a_(a), chunks_(tile_chunks(a.head_dim)) {}

  void attend() {
    const Tiles tiles(shapes());
    pack_queries();
    __builtin_memset(sums_, 0, static_cast<size_t>(chunks_) * sizeof(sums_[0]));
    Vectors::Softmax state;
    for (int key = a_.first; key < a_.end; key += kBlock) {
      const int count = a_.end - key < kBlock ? a_.end - key : kBlock;
      score(key, count);
      const F32 factors = Vectors::soften(scores_, state);
      pack_weights(key);
      pack_values(key, count);
      add_values(key, factors);
    }
    finish(state);
  }

 private:
  using Vectors = KeysKernel<KVType::bf16, 8>;
  static constexpr int kBlock = Vectors::kBlock;
  static constexpr int kHeads = 8;
  static constexpr int kMostChunks = kLargestHeadDim / kTileDepth;

  // Tiles: sums 0 and 1; keys 2 and 3, and what is left of a row 4; queries 5, and their rest 6.
  // For values: sums 0 and 1, weights 2, values 5.
  TileShapes shapes() const {
    const int rest = a_.head_dim % kTileDepth;
    TileShapes shapes;
    for (int tile = 0; tile < 8; ++tile) {
      shapes.rows[tile] = kTileSide;
      shapes.row_bytes[tile] = kTileRowBytes;
    }
    if (rest != 0) {
      shapes.row_bytes[4] = static_cast<uint16_t>(2 * rest);
      shapes.rows[6] = static_cast<uint8_t>(rest / 2);
    }
    return shapes;
  }

  /// Rows of the block behind the one at `key`, counted from that block's first one.
  WHIMBREL_INLINE void ask_for(const KVHead& head, int key, int row, int count) const {
    prefetch_rows(head, key + kBlock + row, count, a_.end);
  }

  F32 query(int head, int dim) const {
    const int dims = padded_dims(a_.head_dim);
    return head < a_.queries && dim < dims ? load(a_.q + head * dims + dim) : zero_f32();
  }

  void pack_queries() {
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      F32 columns[kLanes];
      for (int head = 0; head < kHeads; ++head) {
        const F32 low = query(head, chunk * kTileDepth);
        const F32 high = query(head, chunk * kTileDepth + kLanes);
        columns[head] = join_bf16(upper_half(low), upper_half(high));
        columns[kHeads + head] = join_bf16(sub(low, upper_half(low)), sub(high, upper_half(high)));
      }
      transpose(columns);
      for (int row = 0; row < kLanes; ++row) {
        store(reinterpret_cast<float*>(queries_[chunk] + row * kTileRowBytes), columns[row]);
      }
    }
  }

  /// Sixteen keys from `key` on, from a copy where there are fewer.
  const std::byte* keys_at(int key, int count) {
    const std::byte* rows = a_.keys.data + static_cast<size_t>(key) * a_.keys.row_bytes;
    if (count >= kTileSide) {
      return rows;
    }
    const size_t bytes = count > 0 ? static_cast<size_t>(count) * a_.keys.row_bytes : 0;
    __builtin_memset(spare_, 0, kTileSide * a_.keys.row_bytes);
    __builtin_memcpy(spare_, rows, bytes);
    return spare_;
  }

  void score(int key, int count) {
    for (int half = 0; half < kBlock && half < count; half += kTileSide) {
      ask_for(a_.keys, key, half / 4, 4);
      const std::byte* rows = keys_at(key + half, count - half);
      const size_t stride = a_.keys.row_bytes;
      tile_zero<0>();
      int chunk = 0;
      for (; (chunk + 1) * kTileDepth <= a_.head_dim; ++chunk) {
        tile_load<2>(rows + static_cast<size_t>(chunk) * kTileRowBytes, stride);
        tile_load<5>(queries_[chunk], kTileRowBytes);
        tile_dot_bf16<0, 2, 5>();
      }
      if (chunk < chunks_) {
        tile_load<4>(rows + static_cast<size_t>(chunk) * kTileRowBytes, stride);
        tile_load<6>(queries_[chunk], kTileRowBytes);
        tile_dot_bf16<0, 4, 6>();
      }
      tile_store<0>(products_ + half * kLanes, kTileRowBytes);
    }
    join_scores(key, count);
  }

  /// Adds both parts of each score: two keys of eight heads a vector.
  void join_scores(int first, int count) {
    for (int key = 0; key < kBlock; key += 2) {
      ask_for(a_.keys, first, 8 + key / 2, 1);
      if (key >= count) {
        store(scores_ + key * kHeads, splat(kNoScore));
        continue;
      }
      const __m512 a = load(products_ + key * kLanes).v;
      const __m512 b = load(products_ + (key + 1) * kLanes).v;
      store(
          scores_ + key * kHeads,
          {_mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee))}
      );
    }
    for (int lane = count * kHeads; lane % kLanes != 0; ++lane) {
      scores_[lane] = kNoScore;
    }
  }

  void pack_weights(int key) {
    F32 rows[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      rows[i] = load(scores_ + i * kLanes);
    }
    transpose(rows);  // of a head: even keys in its row, odd ones eight rows on
    for (int head = 0; head < kHeads; ++head) {
      ask_for(a_.keys, key, 24 + head, 1);
      const F32 even = upper_half(rows[head]);
      const F32 odd = upper_half(rows[kHeads + head]);
      store_pairs(head, even, odd);
      const I32 half = splat(int32_t{0x8000});
      const auto rest = [&](F32 x, F32 upper) {
        return upper_half(as_f32(add(as_i32(sub(x, upper)), half)));
      };
      store_pairs(kHeads + head, rest(rows[head], even), rest(rows[kHeads + head], odd));
    }
  }

  void store_pairs(int row, F32 even, F32 odd) {
    const __m512i low = _mm512_srli_epi32(_mm512_castps_si512(even.v), 16);
    const __m512i pairs = _mm512_or_si512(low, _mm512_castps_si512(odd.v));
    _mm512_store_si512(weights_ + row * kTileRowBytes, pairs);
  }

  void pack_values(int key, int count) {
    for (int pair = 0; pair < kBlock / 2; ++pair) {
      ask_for(a_.values, key, pair, 1);
      for (int chunk = 0; chunk < chunks_; ++chunk) {
        const ColumnPairs pairs =
            pair_rows(value(key, 2 * pair, count, chunk), value(key, 2 * pair + 1, count, chunk));
        std::byte* row = values_[chunk] + static_cast<size_t>(pair) * kTileRowBytes;
        _mm512_store_si512(row, pairs.low);
        _mm512_store_si512(row + kTileBytes, pairs.high);
      }
    }
  }

  WHIMBREL_INLINE F32 value(int key, int row, int count, int chunk) const {
    return row < count
               ? load_bf16_row<KVType::bf16>(a_.values, key + row, chunk * kTileDepth, a_.head_dim)
               : zero_f32();
  }

  /// sums = factor * sums + weights * values.
  void add_values(int key, F32 factors) {
    float factor[kLanes];
    store(factor, factors);
    tile_load<2>(weights_, kTileRowBytes);
    const int rows = (kBlock / 2 + chunks_ - 1) / chunks_;
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      ask_for(a_.values, key, kBlock / 2 + chunk * rows, rows);
      tile_zero<0>();
      tile_load<5>(values_[chunk], kTileRowBytes);
      tile_dot_bf16<0, 2, 5>();
      tile_zero<1>();
      tile_load<7>(values_[chunk] + kTileBytes, kTileRowBytes);
      tile_dot_bf16<1, 2, 7>();
      tile_store<0>(products_, kTileRowBytes);
      tile_store<1>(products_ + kTileSide * kLanes, kTileRowBytes);
      for (int head = 0; head < a_.queries; ++head) {
        for (int part = 0; part < 2; ++part) {
          const float* product = products_ + (part * kTileSide + head) * kLanes;
          float* sums = sums_[chunk][part] + head * kLanes;
          const F32 added = add(load(product), load(product + kHeads * kLanes));
          store(sums, fma(load(sums), splat(factor[head]), added));
        }
      }
    }
  }

  void finish(const Vectors::Softmax& state) const {
    const int dims = padded_dims(a_.head_dim);
    for (int head = 0; head < a_.queries; ++head) {
      for (int chunk = 0; chunk < chunks_; ++chunk) {
        const int dim = chunk * kTileDepth;
        const float* low = sums_[chunk][0] + head * kLanes;
        const float* high = sums_[chunk][1] + head * kLanes;
        store_in_order(a_.out + head * dims + dim, load(low), load(high), dims - dim);
      }
    }
    float largest[kLanes];
    float weight[kLanes];
    store(largest, state.largest);
    store(weight, state.weight);
    for (int head = 0; head < a_.queries; ++head) {
      a_.largest[head] = largest[head];
      a_.weight[head] = weight[head] + weight[kHeads + head];
    }
  }

  const AttendKeys& a_;
  int chunks_;
  alignas(64) std::byte queries_[kMostChunks][kTileBytes];
  alignas(64) std::byte values_[kMostChunks][2 * kTileBytes];
  alignas(64) std::byte weights_[kTileBytes];
  alignas(64) std::byte spare_[kTileSide * kLargestHeadDim * 2];
  alignas(64) float scores_[kBlock * kHeads];
  alignas(64) float products_[kBlock * kLanes];
  alignas(64) float sums_[kMostChunks][2][kHeads * kLanes];
};

inline void tiled_attend_keys(const AttendKeys& a) {
  constexpr int kFewHeads = 2;  // vectors keep up with memory
  if (a.keys.type != KVType::bf16 || a.queries <= kFewHeads) {
    return attend_keys(a);
  }
  const int dims = padded_dims(a.head_dim);
  for (int first = 0; first < a.queries; first += kMostQueries) {
    AttendKeys part = a;
    part.q = a.q + first * dims;
    part.queries = a.queries - first < kMostQueries ? a.queries - first : kMostQueries;
    part.out = a.out + first * dims;
    part.largest = a.largest + first;
    part.weight = a.weight + first;
    TiledKeys(part).attend();
  }
}

// ---- Many queries

constexpr float kLog2E = 1.44269504F;

/// 2^x to 3e-6 of its value, 1 at 0: for weights that are rounded to bfloat16.
WHIMBREL_INLINE F32 exp2_coarse(F32 x) {
  constexpr int kFromFloor = 1;
  const F32 r = {_mm512_reduce_ps(x.v, kFromFloor)};
  F32 p = splat(0.013426685F);
  p = fma(p, r, splat(0.052242473F));
  p = fma(p, r, splat(0.2412802F));
  p = fma(p, r, splat(0.69304484F));
  p = fma(p, r, splat(1.0F));
  return {_mm512_scalef_ps(p.v, x.v)};
}

/// A tile of queries: queries, keys, values and weights rounded to bfloat16.
template <KVType type>
class TiledQueries {
 public:
  explicit TiledQueries(const AttendTile& t)
      : t_(t),
        chunks_(tile_chunks(t.head_dim)),
        queries_((t.queries + kStep - 1) / kStep * kStep),
        keys_(reinterpret_cast<std::byte*>(t.scratch)),
        values_(keys_ + static_cast<size_t>(kTiledKeyBlock) * chunks_ * kTileRowBytes),
        q_(values_ + static_cast<size_t>(kTiledKeyBlock) * chunks_ * kTileRowBytes),
        weights_(q_ + static_cast<size_t>(queries_) * chunks_ * kTileRowBytes),
        scores_(reinterpret_cast<float*>(weights_ + static_cast<size_t>(queries_) * kWeightBytes)),
        sums_(scores_ + static_cast<size_t>(queries_) * kTiledKeyBlock),
        largest_(sums_ + static_cast<size_t>(queries_) * chunks_ * kTileDepth),
        weight_(largest_ + queries_),
        factor_(weight_ + queries_) {}

  void attend() {
    const Tiles tiles(shapes());
    start();
    const int end = t_.visible_to(t_.queries - 1);
    for (int key = 0; key < end; key += kTiledKeyBlock) {
      int first = 0;
      while (t_.visible_to(first) <= key) {
        first += t_.group;
      }
      first = first / kStep * kStep;
      const int count = end - key < kTiledKeyBlock ? end - key : kTiledKeyBlock;
      pack_keys(key, count);
      pack_values(key, count);
      for (int query = first; query < queries_; query += kStep) {
        score(query, count);
        soften(query, key);
        add_values(query, count);
      }
    }
    for (int query = 0; query < t_.queries; ++query) {
      finish(query);
    }
  }

 private:
  static constexpr int kStep = 2 * kTileSide;  // queries at once
  static constexpr int kWeightBytes = 2 * kTiledKeyBlock;

  // Tiles: sums 0 to 3, of queries 4 and 5, keys or values 6 and 7.
  static TileShapes shapes() {
    TileShapes shapes;
    for (int tile = 0; tile < 8; ++tile) {
      shapes.rows[tile] = kTileSide;
      shapes.row_bytes[tile] = kTileRowBytes;
    }
    return shapes;
  }

  size_t q_row_bytes() const { return static_cast<size_t>(chunks_) * kTileRowBytes; }

  /// Sums of 16 queries and 16 numbers of a head lie together: [queries / 16][2 * chunks][16][16].
  float* sums_of_tile(int query, int tile) const {
    const size_t before = static_cast<size_t>(query / kTileSide) * 2 * chunks_ + tile;
    return sums_ + before * kTileSide * kLanes;
  }

  void start() {
    const int dims = padded_dims(t_.head_dim);
    for (int query = 0; query < queries_; ++query) {
      for (int chunk = 0; chunk < chunks_; ++chunk) {
        const float* q = t_.q + static_cast<size_t>(query) * dims + chunk * kTileDepth;
        const bool exists = query < t_.queries;
        const bool both = chunk * kTileDepth + kLanes < dims;
        const F32 low = exists ? load(q) : zero_f32();
        const F32 high = exists && both ? load(q + kLanes) : zero_f32();
        std::byte* to = q_ + query * q_row_bytes() + chunk * kTileRowBytes;
        store(reinterpret_cast<float*>(to), join_bf16(low, high));
      }
      largest_[query] = kNoScore;
      weight_[query] = 0.0F;
    }
    const size_t sums = static_cast<size_t>(queries_) * chunks_ * kTileDepth;
    __builtin_memset(sums_, 0, sums * sizeof(float));
  }

  static WHIMBREL_INLINE F32
  row(const KVHead& head, int key, int index, int count, int dim, int head_dim) {
    return index < count ? load_bf16_row<type>(head, key + index, dim, head_dim) : zero_f32();
  }

  /// Keys as tiles [16 keys][chunk] of 16 pairs of numbers times 16 keys.
  void pack_keys(int key, int count) {
    for (int panel = 0; panel < kTiledKeyBlock / kTileSide; ++panel) {
      for (int chunk = 0; chunk < chunks_; ++chunk) {
        F32 rows[kLanes];
        for (int r = 0; r < kLanes; ++r) {
          const int index = panel * kTileSide + r;
          rows[r] = row(t_.keys, key, index, count, chunk * kTileDepth, t_.head_dim);
        }
        transpose(rows);
        auto* to = reinterpret_cast<float*>(keys_ + (panel * chunks_ + chunk) * kTileBytes);
        for (int r = 0; r < kLanes; ++r) {
          store(to + r * kLanes, rows[r]);
        }
      }
    }
  }

  /// Values as tiles [32 keys][chunk][low, high] of 16 pairs of keys times 16 numbers.
  void pack_values(int key, int count) {
    for (int index = 0; index < kTiledKeyBlock; index += 2) {
      const int pair = index % kTileDepth / 2;
      for (int chunk = 0; chunk < chunks_; ++chunk) {
        const int dim = chunk * kTileDepth;
        const ColumnPairs pairs = pair_rows(
            row(t_.values, key, index, count, dim, t_.head_dim),
            row(t_.values, key, index + 1, count, dim, t_.head_dim)
        );
        std::byte* to = values_ + (index / kTileDepth * chunks_ + chunk) * 2 * kTileBytes;
        _mm512_store_si512(to + pair * kTileRowBytes, pairs.low);
        _mm512_store_si512(to + kTileBytes + pair * kTileRowBytes, pairs.high);
      }
    }
  }

  void score(int query, int count) {
    const std::byte* q = q_ + query * q_row_bytes();
    for (int panel = 0; panel * kTileSide < count; panel += 2) {
      const std::byte* keys = keys_ + panel * chunks_ * kTileBytes;
      tile_zero<0>();
      tile_zero<1>();
      tile_zero<2>();
      tile_zero<3>();
      for (int chunk = 0; chunk < chunks_; ++chunk) {
        tile_load<4>(q + chunk * kTileRowBytes, q_row_bytes());
        tile_load<6>(keys + chunk * kTileBytes, kTileRowBytes);
        tile_dot_bf16<0, 4, 6>();
        tile_load<7>(keys + (chunks_ + chunk) * kTileBytes, kTileRowBytes);
        tile_dot_bf16<1, 4, 7>();
        tile_load<5>(q + kTileSide * q_row_bytes() + chunk * kTileRowBytes, q_row_bytes());
        tile_dot_bf16<2, 5, 6>();
        tile_dot_bf16<3, 5, 7>();
      }
      constexpr size_t kStride = kTiledKeyBlock * sizeof(float);
      float* out = scores_ + static_cast<size_t>(query) * kTiledKeyBlock + panel * kTileSide;
      tile_store<0>(out, kStride);
      tile_store<1>(out + kTileSide, kStride);
      tile_store<2>(out + kTileSide * kTiledKeyBlock, kStride);
      tile_store<3>(out + kTileSide * kTiledKeyBlock + kTileSide, kStride);
    }
  }

  /// Weights of kStep queries from their scores.
  void soften(int first, int key) {
    bool changed = false;
    for (int query = first; query < first + kStep && query < t_.queries; ++query) {
      soften_one(query, t_.visible_to(query) - key);
      changed = changed || factor_[query] != 1.0F;
    }
    if (changed) {
      scale_sums(first);
    }
  }

  void soften_one(int query, int count) {
    if (count < kTiledKeyBlock) {
      hide_unseen(query, count);
    }
    constexpr int kVectors = kTiledKeyBlock / kLanes;
    const float* scores = scores_ + static_cast<size_t>(query) * kTiledKeyBlock;
    F32 x[kVectors];
    F32 top = splat(kNoScore);
    unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
      x[v.value] = load(scores + v.value * kLanes);
      top = maximum(top, x[v.value]);
    });
    const float before = largest_[query];
    const float now = largest(top) * kLog2E;
    largest_[query] = before < now ? now : before;
    const F32 down = splat(-largest_[query]);
    F32 weight = zero_f32();
    std::byte* out = weights_ + static_cast<size_t>(query) * kWeightBytes;
    unroll<kVectors / 2>([&](auto v) __attribute__((always_inline)) {
      const F32 low = exp2_coarse(fma(x[2 * v.value], splat(kLog2E), down));
      const F32 high = exp2_coarse(fma(x[2 * v.value + 1], splat(kLog2E), down));
      weight = add(weight, add(low, high));
      store(reinterpret_cast<float*>(out + v.value * kTileRowBytes), join_bf16(low, high));
    });
    factor_[query] = 1.0F;
    if (before != largest_[query]) {
      factor_[query] = _mm512_cvtss_f32(exp2_coarse(splat(before - largest_[query])).v);
    }
    weight_[query] = weight_[query] * factor_[query] + sum(weight);
  }

  void hide_unseen(int query, int count) {
    float* scores = scores_ + static_cast<size_t>(query) * kTiledKeyBlock;
    const F32 lane_numbers = load(kLaneNumbers);
    for (int i = 0; i < kTiledKeyBlock; i += kLanes) {
      const F32 seen = splat(static_cast<float>(count - i));
      store(scores + i, where_less(lane_numbers, seen, load(scores + i), splat(kNoScore)));
    }
  }

  void scale_sums(int first) {
    for (int query = first; query < first + kStep && query < t_.queries; ++query) {
      for (int tile = 0; tile < 2 * chunks_; ++tile) {
        float* sums = sums_of_tile(query, tile) + query % kTileSide * kLanes;
        store(sums, mul(load(sums), splat(factor_[query])));
      }
    }
  }

  void add_values(int query, int count) {
    const std::byte* weights = weights_ + static_cast<size_t>(query) * kWeightBytes;
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      float* upper = sums_of_tile(query, 2 * chunk);
      float* lower = sums_of_tile(query + kTileSide, 2 * chunk);
      tile_load<0>(upper, kTileRowBytes);
      tile_load<1>(upper + kTileSide * kLanes, kTileRowBytes);
      tile_load<2>(lower, kTileRowBytes);
      tile_load<3>(lower + kTileSide * kLanes, kTileRowBytes);
      for (int part = 0; part * kTileDepth < count; ++part) {
        const std::byte* values = values_ + (part * chunks_ + chunk) * 2 * kTileBytes;
        tile_load<4>(weights + part * kTileRowBytes, kWeightBytes);
        tile_load<6>(values, kTileRowBytes);
        tile_dot_bf16<0, 4, 6>();
        tile_load<7>(values + kTileBytes, kTileRowBytes);
        tile_dot_bf16<1, 4, 7>();
        tile_load<5>(weights + kTileSide * kWeightBytes + part * kTileRowBytes, kWeightBytes);
        tile_dot_bf16<2, 5, 6>();
        tile_dot_bf16<3, 5, 7>();
      }
      tile_store<0>(upper, kTileRowBytes);
      tile_store<1>(upper + kTileSide * kLanes, kTileRowBytes);
      tile_store<2>(lower, kTileRowBytes);
      tile_store<3>(lower + kTileSide * kLanes, kTileRowBytes);
    }
  }

  void finish(int query) const {
    float* out = t_.out + static_cast<size_t>(query / t_.group) * t_.row_stride +
                 static_cast<size_t>(query % t_.group) * t_.head_dim;
    const F32 weight = splat(weight_[query]);
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      const float* low = sums_of_tile(query, 2 * chunk) + query % kTileSide * kLanes;
      const float* high = low + kTileSide * kLanes;
      const int dim = chunk * kTileDepth;
      store_in_order(out + dim, div(load(low), weight), div(load(high), weight), t_.head_dim - dim);
    }
  }

  const AttendTile& t_;
  int chunks_;
  int queries_;  // filled up to whole steps
  std::byte* keys_;
  std::byte* values_;
  std::byte* q_;        // [queries][chunks][32] bfloat16
  std::byte* weights_;  // [queries][kTiledKeyBlock] bfloat16
  float* scores_;       // [queries][kTiledKeyBlock]
  float* sums_;
  float* largest_;  // [queries], times kLog2E
  float* weight_;   // [queries], as the next
  float* factor_;
};

inline void tiled_attend_tile(const AttendTile& t) {
  switch (t.keys.type) {
    case KVType::bf16:
      return TiledQueries<KVType::bf16>(t).attend();
    case KVType::f32:
      return TiledQueries<KVType::f32>(t).attend();
    case KVType::codes:
      return TiledQueries<KVType::codes>(t).attend();
  }
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
