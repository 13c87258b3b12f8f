// What happens to rows of activations before they are multiplied.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

/// Lane by lane over [0, width): body(index, lanes) with 16 lanes, and what is left at the end.
template <typename Body>
WHIMBREL_INLINE void for_lanes(int width, const Body& body) {
  int i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    body(i, kLanes);
  }
  if (i < width) {
    body(i, width - i);
  }
}

WHIMBREL_INLINE F32 load_lanes(const float* p, int lanes) {
  return lanes == kLanes ? load(p) : load_first(p, lanes);
}

WHIMBREL_INLINE void store_lanes(float* p, F32 x, int lanes) {
  if (lanes == kLanes) {
    store(p, x);
  } else {
    store_first(p, x, lanes);
  }
}

inline float square_root(float x) {
  return __builtin_sqrtf(x);
}

inline void rms_norm(const float* x, const float* weight, float eps, int width, float* y) {
  F32 squares = zero_f32();
  for_lanes(width, [&](int i, int lanes) __attribute__((always_inline)) {
    const F32 v = load_lanes(x + i, lanes);
    squares = fma(v, v, squares);
  });
  const float mean = sum(squares) / static_cast<float>(width);
  const F32 scale = splat(1.0F / square_root(mean + eps));
  for_lanes(width, [&](int i, int lanes) __attribute__((always_inline)) {
    const F32 normed = mul(load_lanes(x + i, lanes), scale);
    store_lanes(y + i, mul(normed, load_lanes(weight + i, lanes)), lanes);
  });
}

inline void layer_norm(
    const float* x, const float* weight, const float* bias, float eps, int width, float* y
) {
  F32 total = zero_f32();
  for_lanes(width, [&](int i, int lanes) __attribute__((always_inline)) {
    total = add(total, load_lanes(x + i, lanes));
  });
  const F32 mean = splat(sum(total) / static_cast<float>(width));
  F32 squares = zero_f32();
  for_lanes(width, [&](int i, int lanes) __attribute__((always_inline)) {
    const F32 v = sub(load_lanes(x + i, lanes), mean);
    store_lanes(y + i, v, lanes);
    const F32 inside = load_lanes(y + i, lanes);  // zeros behind the end, not the mean
    squares = fma(inside, inside, squares);
  });
  const float variance = sum(squares) / static_cast<float>(width);
  const F32 scale = splat(1.0F / square_root(variance + eps));
  for_lanes(width, [&](int i, int lanes) __attribute__((always_inline)) {
    const F32 normed = mul(load_lanes(y + i, lanes), scale);
    const F32 w = load_lanes(weight + i, lanes);
    store_lanes(y + i, fma(normed, w, load_lanes(bias + i, lanes)), lanes);
  });
}

/// The largest size in a group, NaN where a number is none or is infinite.
inline float largest_size(const float* x, int count) {
  F32 size = zero_f32();
  F32 poison = zero_f32();
  for (int i = 0; i < count; i += kLanes) {
    const F32 v = load(x + i);
    size = maximum(size, absolute(v));
    poison = fma(v, zero_f32(), poison);
  }
  return largest(size) + sum(poison);
}

/// One group of a row: x = scale * integer, integer = 256 hi + lo -> the sum of the integers.
inline int32_t split_group(const float* x, int count, float inverse, int8_t* hi, int8_t* lo) {
  I32 total = zero_i32();
  for (int i = 0; i < count; i += kLanes) {
    const I32 integer = to_i32(mul(load(x + i), splat(inverse)));
    const I32 high = shift_right<8>(add(integer, splat(int32_t{128})));
    store_bytes(hi + i, high);
    store_bytes(lo + i, sub(integer, shift_left<8>(high)));
    total = add(total, integer);
  }
  return sum(total);
}

inline void split_row(const float* x, const SplitRows& out, int row) {
  constexpr float kLargest = 127 * 256;  // what both bytes hold, with room to round
  constexpr float kSmallest = 1e-30F;    // below it 1 / scale would be no float
  for (int group = 0; group < out.groups; ++group, x += out.group_size) {
    const float size = largest_size(x, out.group_size);
    const float scale = size < kSmallest ? 0.0F : size / kLargest;
    const float inverse = size < kSmallest ? 0.0F : kLargest / size;
    int8_t* hi = out.hi(group, row);
    int8_t* lo = hi + static_cast<size_t>(out.tile_rows) * out.group_size;
    const int32_t total = split_group(x, out.group_size, inverse, hi, lo);
    const size_t place = static_cast<size_t>(group) * out.padded_rows() + row;
    out.scales[place] = scale;
    out.sums[place] = scale * static_cast<float>(total);
  }
}

/// The sum of a group of rounded numbers, as Bf16Rows stores it.
inline void store_group_sum(float sum, uint16_t* sums) {
  const F32 total = splat(sum);
  uint16_t high[kLanes];
  uint16_t low[kLanes];
  store_bf16(high, total);
  store_bf16(low, sub(total, load_bf16(high)));
  sums[0] = sums[2] = high[0];
  sums[1] = sums[3] = low[0];
}

/// Zeros behind the last group of a row's sums.
inline void clear_sums_behind(int groups, uint16_t* sums) {
  for (int i = groups * kSumsAGroup; i < sums_of_groups(groups); ++i) {
    sums[i] = 0;
  }
}

inline void to_bf16(const float* x, size_t count, uint16_t* y) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store_bf16(y + i, load(x + i));
  }
  uint16_t rest[kLanes];
  store_bf16(rest, load_first(x + i, static_cast<int>(count - i)));
  for (size_t lane = 0; i + lane < count; ++lane) {
    y[i + lane] = rest[lane];
  }
}

/// The lanes that are not there repeat the first.
inline F32 load_repeated(const float* p, int lanes) {
  float numbers[kLanes];
  store(numbers, splat(p[0]));
  store_first(numbers, load_first(p, lanes), lanes);
  return load(numbers);
}

inline void peaks(const float* x, int count, float* y) {
  for_lanes(count, [&](int i, int lanes) __attribute__((always_inline)) {
    const F32 numbers = lanes == kLanes ? load(x + i) : load_repeated(x + i, lanes);
    *y++ = largest(numbers) + sum(sub(numbers, numbers));  // 0, or NaN
  });
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
