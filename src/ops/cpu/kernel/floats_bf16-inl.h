// Products with bfloat16 by dot products of pairs. Pairs are summed in turn into two sums a row,
// then added: a row's sum does not depend on the others.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

/// Rows x [rows][x_stride] -> out [rows][16].
template <int rows>
WHIMBREL_INLINE void bf16_block(
    const std::byte* panel, const Bf16Product& p, const uint16_t* x, float* out
) {
  constexpr int kSums = 2;
  F32 sums[kSums][rows];
  unroll<kSums * rows>([&](auto i) __attribute__((always_inline)) {
    sums[i.value / rows][i.value % rows] = zero_f32();
  });
  for (int k = 0; k < p.width; k += 2 * kSums) {
    unroll<kSums>([&](auto pair) __attribute__((always_inline)) {
      constexpr int kPair = decltype(pair)::value;
      const int input = k + 2 * kPair;
      const U8 w = load_u8(panel + static_cast<size_t>(input) * kLanes * sizeof(uint16_t));
      unroll<rows>([&](auto r) __attribute__((always_inline)) {
        const U8 pairs = splat_pair(x + r.value * p.x_stride + input);
        sums[kPair][r.value] = dot2_bf16(sums[kPair][r.value], w, pairs);
      });
    });
  }
  unroll<rows>([&](auto r) __attribute__((always_inline)) {
    store(out + r.value * kLanes, add(sums[0][r.value], sums[1][r.value]));
  });
}

inline void bf16_product(const Bf16Product& p) {
  const size_t panel_bytes = static_cast<size_t>(p.width) * kLanes * sizeof(uint16_t);
  for (int panel = 0; panel < p.panels; ++panel) {
    const std::byte* w = p.panel + panel * panel_bytes;
    float* out = p.out + static_cast<size_t>(panel) * p.rows * kLanes;
    in_row_blocks(p.rows, [&](auto rows, int row) __attribute__((always_inline)) {
      bf16_block<decltype(rows)::value>(w, p, p.x + row * p.x_stride, out + row * kLanes);
    });
  }
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
