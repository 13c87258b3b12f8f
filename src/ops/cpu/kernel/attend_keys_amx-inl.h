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

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
