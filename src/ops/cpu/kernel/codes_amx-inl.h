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

/// What belongs to the rows of a tile.
struct TileRows {
  const int8_t* codes;
  const float* scales;
  const float* sums;
  float* out;  // of the first panel
};

/// `rows` rows a tile; a tile of x is loaded once for all `panels`.
template <int bits, int group_size, int rows, int panels>
struct TileKernel {
  static constexpr int kPartBytes = group_size < 64 ? group_size : 64;  // a tile's width in inputs
  static constexpr int kParts = group_size / kPartBytes;
  // Tiles of the hardware: weights [panels][parts], one of x, a sum a panel.
  static constexpr int kX = panels * kParts;
  static constexpr int kSums = kX + 1;

  static TileShapes shapes() {
    TileShapes shapes;
    for (int tile = 0; tile < kSums + panels; ++tile) {
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
      prefetch_block(block, layout.block_bytes());
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

  static WHIMBREL_INLINE void multiply(const int8_t* codes) {
    unroll<kParts>([&](auto part) __attribute__((always_inline)) {
      constexpr int kPart = decltype(part)::value;
      tile_load<kX>(codes + kPart * kPartBytes, group_size);
      unroll<panels>([&](auto p) __attribute__((always_inline)) {
        constexpr int kPanel = decltype(p)::value;
        if constexpr (kPart == 0) {
          tile_zero<kSums + kPanel>();
        }
        tile_dot_bytes<kSums + kPanel, kX, kPanel * kParts + kPart>();
      });
    });
  }

  static WHIMBREL_INLINE void store_sums(TileSums& sums) {
    unroll<panels>([&](auto p) __attribute__((always_inline)) {
      tile_store<kSums + decltype(p)::value>(sums.integers[p.value], 64);
    });
  }

  /// All loads of a row stand before its stores, for the compiler can't know that they differ.
  static WHIMBREL_INLINE void add_sums(
      const TileSums& sums, const Affine* affine, const TileRows& tile, size_t panel_floats
  ) {
    unroll<rows>([&](auto r) __attribute__((always_inline)) {
      constexpr int kRow = decltype(r)::value;
      F32 acc[panels];
      unroll<panels>([&](auto p) __attribute__((always_inline)) {
        const auto* integers = sums.integers[p.value];
        acc[p.value] = add_group(
            load(tile.out + p.value * panel_floats + kRow * kLanes),
            add(times_256(load(integers[kRow])), load(integers[kRow + rows])),
            tile.scales[kRow],
            tile.sums[kRow],
            affine[p.value]
        );
      });
      unroll<panels>([&](auto p) __attribute__((always_inline)) {
        store(tile.out + p.value * panel_floats + kRow * kLanes, acc[p.value]);
      });
    });
  }

  static WHIMBREL_INLINE TileRows tile_at(const CodesProduct& p, int group, int i, float* out) {
    const SplitRows& x = *p.x;
    const int tile = p.first_tile + i;
    const size_t place = static_cast<size_t>(group) * x.padded_rows() + tile * rows;
    return {x.tile(group, tile), x.scales + place, x.sums + place, out + i * rows * kLanes};
  }

  /// Adds a group's products to out. The arithmetic of a tile runs beside the products of the next.
  static WHIMBREL_INLINE void add_blocks(
      const CodesProduct& p, int group, const TileWeights& w, TileSums& sums, float* out
  ) {
    Affine affine[panels];
    unroll<panels>([&](auto q)
                       __attribute__((always_inline)) { affine[q.value] = w.affine[q.value]; });
    const size_t panel_floats = static_cast<size_t>(p.tiles) * rows * kLanes;
    TileRows tile = tile_at(p, group, 0, out);
    multiply(tile.codes);
    store_sums(sums);
    for (int i = 1; i < p.tiles; ++i) {
      const TileRows next = tile_at(p, group, i, out);
      multiply(next.codes);
      add_sums(sums, affine, tile, panel_floats);
      store_sums(sums);
      tile = next;
    }
    add_sums(sums, affine, tile, panel_floats);
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
