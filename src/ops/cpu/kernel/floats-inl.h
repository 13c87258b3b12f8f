// Products with plain numbers, in float32. Even and odd inputs are summed apart, then added: two
// chains of dependent additions a row, whatever the number of rows.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

struct TwoInputs {
  F32 even;
  F32 odd;
};

/// Weights of inputs k and k + 1, k even.
template <Float type>
WHIMBREL_INLINE TwoInputs load_inputs(const std::byte* panel, int k) {
  const std::byte* p = panel + static_cast<size_t>(k) * kLanes * (type == Float::f32 ? 4 : 2);
  if constexpr (type == Float::bf16) {
    const U8 pairs = load_u8(p);
    return {low_bf16(pairs), high_bf16(pairs)};
  } else if constexpr (type == Float::f16) {
    const auto* halves = reinterpret_cast<const uint16_t*>(p);
    return {load_f16(halves), load_f16(halves + kLanes)};
  } else {
    const auto* floats = reinterpret_cast<const float*>(p);
    return {load(floats), load(floats + kLanes)};
  }
}

/// body(Constant<n>(), row) for blocks of n rows from `row` on, large ones first.
template <typename Body>
WHIMBREL_INLINE void in_row_blocks(int rows, const Body& body) {
  int row = 0;
  for (; row + 8 <= rows; row += 8) {
    body(Constant<8>(), row);
  }
  for (; row + 2 <= rows; row += 2) {
    body(Constant<2>(), row);
  }
  if (row < rows) {
    body(Constant<1>(), row);
  }
}

template <Float type>
struct FloatsKernel {
  /// Rows x [rows][x_stride] -> out [rows][16].
  template <int rows>
  static WHIMBREL_INLINE void block(
      const std::byte* panel, const FloatsProduct& p, const float* x, float* out
  ) {
    constexpr int kAhead = 2048;
    F32 even[rows];
    F32 odd[rows];
    unroll<rows>([&](auto r) __attribute__((always_inline)) {
      even[r.value] = zero_f32();
      odd[r.value] = zero_f32();
    });
    for (int k = 0; k < p.layout.width; k += 2) {
      const TwoInputs w = load_inputs<type>(panel, k);
      prefetch(panel + static_cast<size_t>(k) * kLanes * (type == Float::f32 ? 4 : 2) + kAhead);
      unroll<rows>([&](auto r) __attribute__((always_inline)) {
        const float* row = x + r.value * p.x_stride + k;
        even[r.value] = fma(splat(row[0]), w.even, even[r.value]);
        odd[r.value] = fma(splat(row[1]), w.odd, odd[r.value]);
      });
    }
    unroll<rows>([&](auto r) __attribute__((always_inline)) {
      store(out + r.value * kLanes, add(even[r.value], odd[r.value]));
    });
  }

  static void product(const FloatsProduct& p) {
    for (int panel = 0; panel < p.panels; ++panel) {
      const std::byte* w = p.panel + panel * p.layout.panel_bytes();
      float* out = p.out + static_cast<size_t>(panel) * p.rows * kLanes;
      in_row_blocks(p.rows, [&](auto rows, int row) __attribute__((always_inline)) {
        block<decltype(rows)::value>(w, p, p.x + row * p.x_stride, out + row * kLanes);
      });
    }
  }
};

inline void floats_product(const FloatsProduct& p) {
  switch (p.layout.type) {
    case Float::bf16:
      return FloatsKernel<Float::bf16>::product(p);
    case Float::f16:
      return FloatsKernel<Float::f16>::product(p);
    case Float::f32:
      return FloatsKernel<Float::f32>::product(p);
  }
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
