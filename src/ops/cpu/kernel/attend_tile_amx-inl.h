// Attention of many queries on tiles of bfloat16; what is packed how: attend_keys_amx-inl.h.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

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
