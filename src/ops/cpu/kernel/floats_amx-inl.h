// Products of bfloat16 on tiles: 32 rows times two panels at once, so that each tile that is loaded
// serves two products. The order of a sum depends on the width alone.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

/// Inputs of a panel that stay in the first cache while all rows pass.
constexpr int kBf16Inputs = 512;

/// Tiles of the hardware: sums [row_tiles][2], x [row_tiles], weights [panels].
template <int row_tiles, int panels>
struct Bf16Kernel {
  static constexpr int kX = 4;
  static constexpr int kWeights = 6;

  /// For `rows` rows, 16 of them in the first tile where there are two.
  static TileShapes shapes(int rows) {
    TileShapes shapes;
    for (int tile = 0; tile < 8; ++tile) {
      const int row_tile = tile < kX ? tile / 2 : tile - kX;
      const bool last = row_tile == row_tiles - 1;
      const int tile_rows = last ? rows - row_tile * kRoundedTileRows : kRoundedTileRows;
      shapes.rows[tile] = static_cast<uint8_t>(tile < kWeights ? tile_rows : kBf16TileInputs / 2);
      shapes.row_bytes[tile] = 64;
    }
    return shapes;
  }

  static WHIMBREL_INLINE void add_inputs(
      const uint16_t* x, size_t x_stride, const std::byte* w, size_t panel_bytes
  ) {
    unroll<row_tiles>([&](auto r) __attribute__((always_inline)) {
      constexpr int kRow = decltype(r)::value;
      tile_load<kX + kRow>(x + kRow * kRoundedTileRows * x_stride, 2 * x_stride);
    });
    unroll<panels>([&](auto p) __attribute__((always_inline)) {
      constexpr int kPanel = decltype(p)::value;
      tile_load<kWeights + kPanel>(w + kPanel * panel_bytes, 64);
      unroll<row_tiles>([&](auto r) __attribute__((always_inline)) {
        constexpr int kRow = decltype(r)::value;
        tile_dot_bf16<2 * kRow + kPanel, kX + kRow, kWeights + kPanel>();
      });
    });
  }

  /// body(tile of sums, its place in out).
  template <typename Body>
  static WHIMBREL_INLINE void for_sums(float* out, size_t panel_floats, const Body& body) {
    unroll<row_tiles>([&](auto r) __attribute__((always_inline)) {
      unroll<panels>([&](auto p) __attribute__((always_inline)) {
        constexpr int kRow = decltype(r)::value;
        constexpr int kPanel = decltype(p)::value;
        body(
            Constant<2 * kRow + kPanel>(),
            out + kPanel * panel_floats + kRow * kRoundedTileRows * kLanes
        );
      });
    });
  }

  /// Adds the products of inputs [first, end) of the rows from `row` on.
  static WHIMBREL_INLINE void add_rows(
      const Bf16Product& p, int panel, int first, int end, int row
  ) {
    const size_t panel_bytes = static_cast<size_t>(p.width) * kLanes * sizeof(uint16_t);
    const size_t panel_floats = static_cast<size_t>(p.rows) * kLanes;
    float* out = p.out + panel * panel_floats + row * kLanes;
    if (first == 0) {
      for_sums(out, panel_floats, [](auto tile, float*) { tile_zero<decltype(tile)::value>(); });
    } else {
      for_sums(out, panel_floats, [](auto tile, const float* sums) {
        tile_load<decltype(tile)::value>(sums, 64);
      });
    }
    const uint16_t* x = p.x + row * p.x_stride;
    const std::byte* w = p.panel + panel * panel_bytes;
    for (int k = first; k < end; k += kBf16TileInputs) {
      add_inputs(x + k, p.x_stride, w + static_cast<size_t>(k) * kLanes * 2, panel_bytes);
    }
    for_sums(out, panel_floats, [](auto tile, float* sums) {
      tile_store<decltype(tile)::value>(sums, 64);
    });
  }

  /// Rows [row, end), a multiple of `step`, times the panels from `panel` on.
  static void product(const Bf16Product& p, int panel, int row, int end, int step) {
    const Tiles tiles(shapes(step));
    for (int first = 0; first < p.width; first += kBf16Inputs) {
      const int last = smaller(p.width, first + kBf16Inputs);
      for (int r = row; r < end; r += step) {
        add_rows(p, panel, first, last, r);
      }
    }
  }
};

template <int panels>
void bf16_panels(const Bf16Product& p, int panel) {
  constexpr int kTwo = 2 * kRoundedTileRows;
  const int whole = p.rows / kTwo * kTwo;
  const int left = p.rows - whole;
  if (whole > 0) {
    Bf16Kernel<2, panels>::product(p, panel, 0, whole, kTwo);
  }
  if (left > kRoundedTileRows) {
    Bf16Kernel<2, panels>::product(p, panel, whole, p.rows, left);
  } else if (left > 0) {
    Bf16Kernel<1, panels>::product(p, panel, whole, p.rows, left);
  }
}

inline void bf16_product_on_tiles(const Bf16Product& p) {
  int panel = 0;
  for (; panel + 2 <= p.panels; panel += 2) {
    bf16_panels<2>(p, panel);
  }
  if (panel < p.panels) {
    bf16_panels<1>(p, panel);
  }
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
