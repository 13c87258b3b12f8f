// Products with affine codes on tiles. A tile of SplitRows is a tile of the hardware as it stands,
// 64 inputs of an unpacked block are another; their product holds the rows' hi sums, then their lo
// sums. It takes less time than what is left, the arithmetic of add_group.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

/// Blocks of one group, one a panel.
struct TileWeights {
  alignas(64) uint8_t codes[2][128 * kLanes];  // unpacked
  Affine affine[2];
};

/// Integers of a tile of rows times a group, one set a panel: hi sums, then lo sums.
struct TileSums {
  alignas(64) int32_t integers[2][2 * kTileRows][kLanes];
};

/// `rows` rows a tile; a tile of x is loaded once for all `panels`.
template <int bits, int group_size, int rows, int panels>
struct TileKernel {
  static constexpr int kPartBytes = group_size < 64 ? group_size : 64;  // a tile's width in inputs
  static constexpr int kParts = group_size / kPartBytes;
  // Tiles of the hardware: weights [panels][parts], one of x, sums [sets][panels].
  static constexpr int kX = panels * kParts;
  static constexpr int kSums = kX + 1;
  static constexpr int kSets = kSums + 2 * panels <= 8 ? 2 : 1;  // so that a product need not wait

  static TileShapes shapes() {
    TileShapes shapes;
    for (int tile = 0; tile < kSums + kSets * panels; ++tile) {
      shapes.rows[tile] = tile < kX ? kPartBytes / 4 : 2 * rows;
      shapes.row_bytes[tile] = tile == kX ? kPartBytes : 64;
    }
    return shapes;
  }

  static WHIMBREL_INLINE void load_weights(
      const std::byte* first_block, const CodesLayout& layout, TileWeights& w
  ) {
    unroll<panels>([&](auto p) __attribute__((always_inline)) {
      constexpr int kPanel = decltype(p)::value;
      const std::byte* block = first_block + kPanel * layout.panel_bytes();
      prefetch_lines<CodesKernel<bits, group_size>::kLines>(block);
      unroll<group_size / 4>([&](auto v) __attribute__((always_inline)) {
        store_u8(w.codes[kPanel] + 64 * v.value, unpack<bits, group_size, v.value>(block));
      });
      w.affine[kPanel] = load_affine(block, layout);
      unroll<kParts>([&](auto part) __attribute__((always_inline)) {
        constexpr int kPart = decltype(part)::value;
        tile_load<kPanel * kParts + kPart>(w.codes[kPanel] + kPart * kPartBytes * kLanes, 64);
      });
    });
  }

  template <int set>
  static WHIMBREL_INLINE void multiply(const int8_t* codes) {
    unroll<kParts>([&](auto part) __attribute__((always_inline)) {
      constexpr int kPart = decltype(part)::value;
      tile_load<kX>(codes + kPart * kPartBytes, group_size);
      unroll<panels>([&](auto p) __attribute__((always_inline)) {
        constexpr int kPanel = decltype(p)::value;
        constexpr int kSum = kSums + set * panels + kPanel;
        if constexpr (kPart == 0) {
          tile_zero<kSum>();
        }
        tile_dot_bytes<kSum, kX, kPanel * kParts + kPart>();
      });
    });
  }

  template <int set>
  static WHIMBREL_INLINE void store_sums(TileSums& sums) {
    unroll<panels>([&](auto p) __attribute__((always_inline)) {
      tile_store<kSums + set * panels + decltype(p)::value>(sums.integers[p.value], 64);
    });
  }

  /// All loads of a row stand before its stores, for the compiler can't know that they differ.
  static WHIMBREL_INLINE void add_sums(
      const TileSums& sums,
      const Affine* affine,
      const float* x_scales,
      const float* x_sums,
      float* const (&out)[panels]
  ) {
    unroll<rows>([&](auto r) __attribute__((always_inline)) {
      constexpr int kRow = decltype(r)::value;
      F32 acc[panels];
      unroll<panels>([&](auto p) __attribute__((always_inline)) {
        const auto* integers = sums.integers[p.value];
        const I32 integer = add(times_256(load(integers[kRow])), load(integers[kRow + rows]));
        acc[p.value] = add_group(
            load(out[p.value] + kRow * kLanes),
            integer,
            x_scales[kRow],
            x_sums[kRow],
            affine[p.value]
        );
      });
      unroll<panels>([&](auto p) __attribute__((always_inline)) {
        store(out[p.value] + kRow * kLanes, acc[p.value]);
      });
    });
  }

  /// Adds a group's products to out. The arithmetic of a tile runs beside the products of the next
  /// ones: it is kSets tiles behind them.
  static WHIMBREL_INLINE void add_blocks(
      const CodesProduct& p, int group, const TileWeights& w, TileSums& sums, float* first_out
  ) {
    const SplitRows& x = *p.x;
    Affine affine[panels];
    float* out[panels];
    unroll<panels>([&](auto q) __attribute__((always_inline)) {
      affine[q.value] = w.affine[q.value];
      out[q.value] = first_out + static_cast<size_t>(q.value) * p.tiles * rows * kLanes;
    });
    const size_t place = static_cast<size_t>(group) * x.padded_rows() + p.first_tile * rows;
    const float* x_scales = x.scales + place;
    const float* x_sums = x.sums + place;
    const int8_t* codes = x.tile(group, p.first_tile);
    for (int i = 0; i < p.tiles + kSets; ++i) {
      if constexpr (kSets == 1) {
        if (i > 0) {
          store_sums<0>(sums);
        }
      }
      if (i < p.tiles) {
        if (kSets == 1 || i % 2 == 0) {
          multiply<0>(codes);
        } else {
          multiply<kSets - 1>(codes);
        }
        codes += 2 * rows * group_size;
      }
      if (i >= kSets) {
        add_sums(sums, affine, x_scales, x_sums, out);
        x_scales += rows;
        x_sums += rows;
        unroll<panels>([&](auto q)
                           __attribute__((always_inline)) { out[q.value] += rows * kLanes; });
      }
      if constexpr (kSets == 2) {
        if (i > 0 && i <= p.tiles) {
          if (i % 2 == 0) {
            store_sums<1>(sums);
          } else {
            store_sums<0>(sums);
          }
        }
      }
    }
  }

  static void product(const CodesProduct& p, int panel) {
    const Tiles tiles(shapes());
    TileWeights w;
    TileSums sums;
    const int panel_floats = p.tiles * rows * kLanes;
    float* out = p.out + static_cast<size_t>(panel) * panel_floats;
    clear(out, panels * panel_floats);
    const std::byte* block = p.panel + panel * p.layout.panel_bytes();
    for (int group = 0; group < p.layout.groups; ++group) {
      load_weights(block, p.layout, w);
      add_blocks(p, group, w, sums, out);
      block += p.layout.block_bytes();
    }
  }
};

template <int bits, int group_size, int rows>
void tile_products(const CodesProduct& p) {
  int panel = 0;
  for (; panel + 2 <= p.panels; panel += 2) {
    TileKernel<bits, group_size, rows, 2>::product(p, panel);
  }
  if (panel < p.panels) {
    TileKernel<bits, group_size, rows, 1>::product(p, panel);
  }
}

template <int bits, int group_size>
void tile_products_of(const CodesProduct& p) {
  if (p.x->tile_rows == kTileRows) {
    tile_products<bits, group_size, kTileRows>(p);
  } else {
    CodesKernel<bits, group_size>::product(p);
  }
}

template <int bits>
void tile_products_of(const CodesProduct& p) {
  switch (p.layout.group_size) {
    case 32:
      return tile_products_of<bits, 32>(p);
    case 64:
      return tile_products_of<bits, 64>(p);
    default:
      return tile_products_of<bits, 128>(p);
  }
}

inline void codes_product_on_tiles(const CodesProduct& p) {
  switch (p.layout.bits) {
    case 2:
      return tile_products_of<2>(p);
    case 3:
      return tile_products_of<3>(p);
    case 4:
      return tile_products_of<4>(p);
    case 5:
      return tile_products_of<5>(p);
    case 6:
      return tile_products_of<6>(p);
    default:
      return tile_products_of<8>(p);
  }
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
