// Rows of heads: norm, rotation, and the way into and out of a cache.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

WHIMBREL_INLINE float f32_of_bf16(uint16_t x) {
  const uint32_t bits = static_cast<uint32_t>(x) << 16;
  float number;
  __builtin_memcpy(&number, &bits, sizeof(number));
  return number;
}

WHIMBREL_INLINE F32 load_dims(const float* p, int count) {
  return count >= kLanes ? load(p) : load_first(p, count);
}

WHIMBREL_INLINE void store_dims(float* p, F32 x, int count) {
  if (count >= kLanes) {
    store(p, x);
  } else {
    store_first(p, x, count);
  }
}

/// Rows of keys or values, 16 numbers at a time. load_part: the first `count` ones, zeros behind.
template <KVType type>
struct KVRows;

template <>
struct KVRows<KVType::bf16> {
  static WHIMBREL_INLINE F32 load(const KVHead& head, int row, int dim) {
    return load_bf16(numbers(head, row) + dim);
  }
  static WHIMBREL_INLINE F32 load_part(const KVHead& head, int row, int dim, int count) {
    uint16_t part[kLanes] = {};
    __builtin_memcpy(part, numbers(head, row) + dim, static_cast<size_t>(count) * sizeof(uint16_t));
    return load_bf16(part);
  }
  static WHIMBREL_INLINE const uint16_t* numbers(const KVHead& head, int row) {
    return reinterpret_cast<const uint16_t*>(head.data + static_cast<size_t>(row) * head.row_bytes);
  }
};

template <>
struct KVRows<KVType::f32> {
  static WHIMBREL_INLINE F32 load(const KVHead& head, int row, int dim) {
    return WHIMBREL_ISA_NAMESPACE::load(numbers(head, row) + dim);
  }
  static WHIMBREL_INLINE F32 load_part(const KVHead& head, int row, int dim, int count) {
    return load_first(numbers(head, row) + dim, count);
  }
  static WHIMBREL_INLINE const float* numbers(const KVHead& head, int row) {
    return reinterpret_cast<const float*>(head.data + static_cast<size_t>(row) * head.row_bytes);
  }
};

template <>
struct KVRows<KVType::codes> {
  static WHIMBREL_INLINE F32 load(const KVHead& head, int row, int dim) {
    const std::byte* codes = head.data + static_cast<size_t>(row) * head.row_bytes + dim;
    const size_t groups = head.row_bytes / static_cast<size_t>(head.group_size);
    const size_t group =
        static_cast<size_t>(row) * groups + static_cast<size_t>(dim / head.group_size);
    return fma(
        splat(f32_of_bf16(head.scales[group])),
        to_f32(load_bytes(reinterpret_cast<const uint8_t*>(codes))),
        splat(f32_of_bf16(head.offsets[group]))
    );
  }
  /// Groups are whole vectors: there is no part.
  static WHIMBREL_INLINE F32 load_part(const KVHead& head, int row, int dim, int) {
    return load(head, row, dim);
  }
};

/// 16 numbers from `dim` on of a row, zeros behind head_dim.
template <KVType type>
WHIMBREL_INLINE F32 load_row(const KVHead& head, int row, int dim, int head_dim) {
  const int count = head_dim - dim;
  return count >= kLanes ? KVRows<type>::load(head, row, dim)
                         : KVRows<type>::load_part(head, row, dim, count);
}

/// 1 / sqrt(mean of x^2 + eps).
WHIMBREL_INLINE float rms_factor(const float* x, int width, float eps) {
  F32 squares = zero_f32();
  for (int i = 0; i < width; i += kLanes) {
    const F32 v = load_dims(x + i, width - i);
    squares = fma(v, v, squares);
  }
  return 1.0F / __builtin_sqrtf(sum(squares) / static_cast<float>(width) + eps);
}

inline void prepare_head(const PrepareHead& h) {
  const int half = h.head_dim / 2;
  const F32 norm = splat(h.weight != nullptr ? rms_factor(h.x, h.head_dim, h.eps) : 1.0F);
  const F32 scale = splat(h.scale);
  for (int i = 0; i < half; i += kLanes) {
    const int count = half - i;
    F32 low = load_dims(h.x + i, count);
    F32 high = load_dims(h.x + half + i, count);
    if (h.weight != nullptr) {
      low = mul(mul(low, norm), load_dims(h.weight + i, count));
      high = mul(mul(high, norm), load_dims(h.weight + half + i, count));
    }
    const F32 cosine = h.cos != nullptr ? load_dims(h.cos + i, count) : splat(1.0F);
    const F32 sine = h.cos != nullptr ? load_dims(h.sin + i, count) : zero_f32();
    const F32 turned_low = sub(mul(low, cosine), mul(high, sine));
    const F32 turned_high = add(mul(high, cosine), mul(low, sine));
    store_dims(h.out + i, mul(turned_low, scale), count);
    store_dims(h.out + half + i, mul(turned_high, scale), count);
  }
  for (int i = h.head_dim; i < padded_dims(h.head_dim); ++i) {
    h.out[i] = 0.0F;
  }
}

/// The bfloat16 next to x on the side of `up`, or x itself.
inline uint16_t bf16_beside(float x, bool up) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  const bool away_from_zero = (bits >> 31 != 0) != up;
  if (away_from_zero && (bits & 0xffff) != 0) {
    bits += 0x10000;
  }
  return static_cast<uint16_t>(bits >> 16);
}

/// Scale and offset are rounded outwards first, so that the codes reach every number of the group.
inline void store_codes(
    const float* x, int count, uint8_t* codes, uint16_t& scale, uint16_t& offset
) {
  F32 most = load(x);
  F32 least = most;
  for (int i = kLanes; i < count; i += kLanes) {
    most = maximum(most, load(x + i));
    least = minimum(least, load(x + i));
  }
  offset = bf16_beside(-largest(sub(zero_f32(), least)), false);
  const float base = f32_of_bf16(offset);
  scale = bf16_beside((largest(most) - base) / 255.0F, true);
  const float step = f32_of_bf16(scale);
  const F32 inverse = splat(step > 0.0F ? 1.0F / step : 0.0F);
  for (int i = 0; i < count; i += kLanes) {
    const F32 code = mul(sub(load(x + i), splat(base)), inverse);
    const F32 inside = minimum(maximum(code, zero_f32()), splat(255.0F));
    store_bytes(reinterpret_cast<int8_t*>(codes + i), to_i32(inside));
  }
}

inline void store_kv_row(const StoreKVRow& s) {
  if (s.group_size != 0) {
    for (int i = 0; i < s.head_dim; i += s.group_size) {
      const int group = i / s.group_size;
      auto* codes = reinterpret_cast<uint8_t*>(s.data) + i;
      store_codes(s.x + i, s.group_size, codes, s.scales[group], s.offsets[group]);
    }
    return;
  }
  auto* numbers = reinterpret_cast<uint16_t*>(s.data);
  int i = 0;
  for (; i + kLanes <= s.head_dim; i += kLanes) {
    store_bf16(numbers + i, load(s.x + i));
  }
  if (i < s.head_dim) {
    uint16_t rest[kLanes];
    store_bf16(rest, load_first(s.x + i, s.head_dim - i));
    __builtin_memcpy(numbers + i, rest, static_cast<size_t>(s.head_dim - i) * sizeof(uint16_t));
  }
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
