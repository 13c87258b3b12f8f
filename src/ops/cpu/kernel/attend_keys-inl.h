// Attention of one row: the heads that share keys and values, over a range of keys.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

// Below every score; not infinite, for the difference of two infinities is no number.
constexpr float kNoScore = -1e38F;

// Sums that fit into registers, and queries that are worth a kernel of their own.
#if defined(__AVX512F__)
constexpr int kSumsInRegisters = 16;
constexpr int kMostQueries = 8;
#elif defined(__AVX2__) || defined(__ARM_NEON)
constexpr int kSumsInRegisters = 4;
constexpr int kMostQueries = 4;
#else
constexpr int kSumsInRegisters = 2;
constexpr int kMostQueries = 2;
#endif

/// Asks for `count` rows of the block behind the one at work: a few at a time, for a core waits for
/// memory at more than some ten requests.
WHIMBREL_INLINE void prefetch_rows(const KVHead& head, int row, int count, int end) {
  if (row >= end) {
    return;
  }
  const std::byte* p = head.data + static_cast<size_t>(row) * head.row_bytes;
  const std::byte* stop = p + static_cast<size_t>(count) * head.row_bytes;
  for (; p < stop; p += 64) {
    prefetch(p);
  }
}

/// `queries` heads at once, 1 to kMostQueries. Scores of a block lie key by key, `width` lanes a
/// key: lane key * width + query, those of no query are 0.
template <KVType type, int queries>
struct KeysKernel {
  static constexpr int kBlock = 32;
  static constexpr int kWidth = queries == 1 ? 1 : queries == 2 ? 2 : queries <= 4 ? 4 : 8;
  static constexpr int kKeysAVector = kLanes / kWidth;
  static constexpr int kVectors = kBlock * kWidth / kLanes;
  // Keys whose dot products are summed together.
  static constexpr int kKeysAtOnce = kSumsInRegisters >= kWidth ? kSumsInRegisters / kWidth : 1;

  /// Lanes of the dot products of keys [key, key + kKeysAtOnce) with the queries -> [kLanes] sums.
  static WHIMBREL_INLINE void dots(const AttendKeys& a, int key, F32* sums) {
    const int dims = padded_dims(a.head_dim);
    F32 s[kKeysAtOnce * queries];
    unroll<kKeysAtOnce * queries>([&](auto i)
                                      __attribute__((always_inline)) { s[i.value] = zero_f32(); });
    for (int dim = 0; dim < a.head_dim; dim += kLanes) {
      unroll<kKeysAtOnce>([&](auto k) __attribute__((always_inline)) {
        const int row = key + k.value < a.end ? key + k.value : a.end - 1;
        const F32 numbers = load_row<type>(a.keys, row, dim, a.head_dim);
        unroll<queries>([&](auto g) __attribute__((always_inline)) {
          F32& total = s[k.value * queries + g.value];
          total = fma(load(a.q + g.value * dims + dim), numbers, total);
        });
      });
    }
    unroll<kKeysAtOnce * queries>([&](auto i) __attribute__((always_inline)) {
      sums[i.value / queries * kWidth + i.value % queries] = s[i.value];
    });
  }

  /// Scores of `count` keys from `key` on.
  static WHIMBREL_INLINE void score(const AttendKeys& a, int key, int count, float* scores) {
    for (int i = 0; i < kBlock; i += kKeysAVector) {
      if (i >= count) {
        store(scores + i * kWidth, splat(kNoScore));
        continue;
      }
      F32 sums[kLanes];
      unroll<kLanes>([&](auto lane)
                         __attribute__((always_inline)) { sums[lane.value] = zero_f32(); });
      for (int k = 0; k < kKeysAVector; k += kKeysAtOnce) {
        prefetch_rows(a.keys, key + kBlock + i + k, kKeysAtOnce, a.end);
        dots(a, key + i + k, sums + k * kWidth);
      }
      store(scores + i * kWidth, sums_of(sums));
    }
    for (int lane = count * kWidth; lane % kLanes != 0; ++lane) {
      scores[lane] = kNoScore;
    }
  }

  /// The largest of all lanes that belong to the same query, in each of them.
  static WHIMBREL_INLINE F32 largest_by_query(F32 x) {
    float lanes[kLanes];
    store(lanes, x);
    for (int i = 0; i < kWidth; ++i) {
      for (int k = 1; k < kKeysAVector; ++k) {
        lanes[i] = lanes[i] < lanes[k * kWidth + i] ? lanes[k * kWidth + i] : lanes[i];
      }
      for (int k = 1; k < kKeysAVector; ++k) {
        lanes[k * kWidth + i] = lanes[i];
      }
    }
    return load(lanes);
  }

  struct Softmax {
    F32 largest = splat(kNoScore);
    F32 weight = zero_f32();  // of the keys of each lane
  };

  /// Scores become exp(score - largest). Returns by what earlier sums have to be multiplied.
  static WHIMBREL_INLINE F32 soften(float* scores, Softmax& state) {
    F32 top = state.largest;
    for (int v = 0; v < kVectors; ++v) {
      top = maximum(top, load(scores + v * kLanes));
    }
    top = largest_by_query(top);
    const F32 factor = exp(sub(state.largest, top));
    F32 weight = mul(state.weight, factor);
    for (int v = 0; v < kVectors; ++v) {
      const F32 p = exp(sub(load(scores + v * kLanes), top));
      store(scores + v * kLanes, p);
      weight = add(weight, p);
    }
    state = {top, weight};
    return factor;
  }

  /// out = factor * out + sum over `count` keys of p * value, for `vectors` vectors from `dim` on.
  template <int vectors>
  static WHIMBREL_INLINE void add_values(
      const AttendKeys& a, int dim, int first, int count, const float* p, const float* factor
  ) {
    const int dims = padded_dims(a.head_dim);
    F32 s[queries * vectors];
    unroll<queries * vectors>([&](auto i) __attribute__((always_inline)) {
      constexpr int kQuery = i.value / vectors;
      const float* out = a.out + kQuery * dims + dim + i.value % vectors * kLanes;
      s[i.value] = mul(load(out), splat(factor[kQuery]));
    });
    for (int key = 0; key < count; ++key) {
      if (dim == 0) {
        prefetch_rows(a.values, first + kBlock + key, 1, a.end);
      }
      F32 numbers[vectors];
      unroll<vectors>([&](auto v) __attribute__((always_inline)) {
        numbers[v.value] =
            load_row<type>(a.values, first + key, dim + v.value * kLanes, a.head_dim);
      });
      unroll<queries>([&](auto g) __attribute__((always_inline)) {
        const F32 weight = splat(p[key * kWidth + g.value]);
        unroll<vectors>([&](auto v) __attribute__((always_inline)) {
          F32& total = s[g.value * vectors + v.value];
          total = fma(weight, numbers[v.value], total);
        });
      });
    }
    unroll<queries * vectors>([&](auto i) __attribute__((always_inline)) {
      constexpr int kQuery = i.value / vectors;
      store(a.out + kQuery * dims + dim + i.value % vectors * kLanes, s[i.value]);
    });
  }

  static WHIMBREL_INLINE void add_block(
      const AttendKeys& a, int key, int count, const float* p, F32 factors
  ) {
    constexpr int kFit = kSumsInRegisters / queries;
    constexpr int kMany = kFit >= 4 ? 4 : kFit >= 2 ? 2 : 1;
    float factor[kLanes];
    store(factor, factors);
    int dim = 0;
    for (; dim + kMany * kLanes <= a.head_dim; dim += kMany * kLanes) {
      add_values<kMany>(a, dim, key, count, p, factor);
    }
    for (; dim < a.head_dim; dim += kLanes) {
      add_values<1>(a, dim, key, count, p, factor);
    }
  }

  static void attend(const AttendKeys& a) {
    alignas(64) float scores[kBlock * kWidth];
    Softmax state;
    for (int i = 0; i < queries * padded_dims(a.head_dim); ++i) {
      a.out[i] = 0.0F;
    }
    for (int key = a.first; key < a.end; key += kBlock) {
      const int count = a.end - key < kBlock ? a.end - key : kBlock;
      score(a, key, count, scores);
      const F32 factors = soften(scores, state);
      add_block(a, key, count, scores, factors);
    }
    finish(a, state);
  }

  static void finish(const AttendKeys& a, const Softmax& state) {
    float largest[kLanes];
    float weight[kLanes];
    store(largest, state.largest);
    store(weight, state.weight);
    for (int g = 0; g < queries; ++g) {
      a.largest[g] = largest[g];
      a.weight[g] = weight[g];
      for (int k = 1; k < kKeysAVector; ++k) {
        a.weight[g] += weight[k * kWidth + g];
      }
    }
  }
};

/// The kernel for a.queries.
template <KVType type, int queries = kMostQueries>
void attend_keys_of(const AttendKeys& a) {
  if constexpr (queries > 1) {
    if (a.queries < queries) {
      return attend_keys_of<type, queries - 1>(a);
    }
  }
  KeysKernel<type, queries>::attend(a);
}

inline void attend_keys(const AttendKeys& a) {
  const int dims = padded_dims(a.head_dim);
  for (int first = 0; first < a.queries; first += kMostQueries) {
    AttendKeys part = a;
    part.q = a.q + first * dims;
    part.queries = a.queries - first < kMostQueries ? a.queries - first : kMostQueries;
    part.out = a.out + first * dims;
    part.largest = a.largest + first;
    part.weight = a.weight + first;
    if (a.keys.type == KVType::codes) {
      attend_keys_of<KVType::codes>(part);
    } else {
      attend_keys_of<KVType::bf16>(part);
    }
  }
}

inline void combine_parts(const CombineParts& c) {
  const int dims = padded_dims(c.head_dim);
  const int part_floats = c.queries * dims;
  for (int query = 0; query < c.queries; ++query) {
    float top = kNoScore;
    for (int part = 0; part < c.parts; ++part) {
      const float largest = c.largest[part * c.queries + query];
      top = top < largest ? largest : top;
    }
    float* out = c.out + query * c.head_dim;
    F32 total = zero_f32();
    for (int part = 0; part < c.parts; ++part) {
      const int place = part * c.queries + query;
      const F32 factor = exp(splat(c.largest[place] - top));
      total = fma(splat(c.weights[place]), factor, total);
      const float* values = c.outs + static_cast<size_t>(part) * part_floats + query * dims;
      for (int dim = 0; dim < c.head_dim; dim += kLanes) {
        const int count = c.head_dim - dim;
        const F32 before = part == 0 ? zero_f32() : load_dims(out + dim, count);
        store_dims(out + dim, fma(load(values + dim), factor, before), count);
      }
    }
    for (int dim = 0; dim < c.head_dim; dim += kLanes) {
      const int count = c.head_dim - dim;
      store_dims(out + dim, div(load_dims(out + dim, count), total), count);
    }
  }
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
