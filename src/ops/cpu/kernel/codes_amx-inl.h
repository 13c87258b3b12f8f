// Products with affine codes on tiles. A tile of SplitRows is a tile of the hardware as it stands,
// 64 inputs of an unpacked block are another; their product holds the rows' hi sums, then their lo
// sums. It takes less time than what is left, the arithmetic of add_group.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

/// Codes of one group, a block a panel, unpacked.
struct TileCodes {
  alignas(64) uint8_t bytes[2][128 * kLanes];
};

/// Integers of a tile of rows times a group, one set a panel: hi sums, then lo sums.
struct TileSums {
  alignas(64) int32_t integers[2][2 * kTileRows][kLanes];
};

/// What scales the integers of a tile of rows times a group, and where the products are added.
struct TilePlace {
  Affine affine[2] = {};  // one a panel
  const float* x_scales = nullptr;
  const float* x_sums = nullptr;
  float* out = nullptr;  // of the first panel
};

/// Tiles of rows times groups on their way: what one step began is stored in the next one and added
/// in the one after that. A unit's number modulo 2 is its place.
struct TileUnits {
  TileSums sums[2];
  TilePlace places[2];
  int count = 0;
};

/// A tile of x is loaded once for all `panels`.
template <int bits, int group_size, int panels>
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
      shapes.rows[tile] = tile < kX ? kPartBytes / 4 : 2 * kTileRows;
      shapes.row_bytes[tile] = tile == kX ? kPartBytes : 64;
    }
    return shapes;
  }

  static WHIMBREL_INLINE void unpack_group(
      const std::byte* first_block, const CodesLayout& layout, TileCodes& codes
  ) {
    unroll<panels>([&](auto p) __attribute__((always_inline)) {
      const std::byte* block = first_block + p.value * layout.panel_bytes();
      prefetch_lines<CodesKernel<bits, group_size>::kLines, kStreamAhead>(block);
      unroll<group_size / 4>([&](auto v) __attribute__((always_inline)) {
        store_u8(codes.bytes[p.value] + 64 * v.value, unpack<bits, group_size, v.value>(block));
      });
    });
  }

  static WHIMBREL_INLINE void load_codes(const TileCodes& codes) {
    unroll<panels>([&](auto p) __attribute__((always_inline)) {
      unroll<kParts>([&](auto part) __attribute__((always_inline)) {
        constexpr int kTile = decltype(p)::value * kParts + decltype(part)::value;
        tile_load<kTile>(codes.bytes[p.value] + part.value * kPartBytes * kLanes, 64);
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
      const TileSums& sums, const TilePlace& place, size_t panel_floats
  ) {
    unroll<kTileRows>([&](auto r) __attribute__((always_inline)) {
      constexpr int kRow = decltype(r)::value;
      F32 acc[panels];
      unroll<panels>([&](auto p) __attribute__((always_inline)) {
        const auto* integers = sums.integers[p.value];
        const I32 integer = add(times_256(load(integers[kRow])), load(integers[kRow + kTileRows]));
        acc[p.value] = add_group(
            load(place.out + p.value * panel_floats + kRow * kLanes),
            integer,
            place.x_scales[kRow],
            place.x_sums[kRow],
            place.affine[p.value]
        );
      });
      unroll<panels>([&](auto p) __attribute__((always_inline)) {
        store(place.out + p.value * panel_floats + kRow * kLanes, acc[p.value]);
      });
    });
  }

  /// Begins a unit whose number modulo 2 is `turn`, stores the one before, adds the one before
  /// that.
  template <int turn>
  static WHIMBREL_INLINE void run_unit(
      TileUnits& units, const int8_t* x, const TilePlace& place, size_t panel_floats
  ) {
    constexpr int kSet = turn % kSets;
    constexpr int kBefore = (1 - turn) % kSets;
    if constexpr (kSets == 1) {
      if (units.count > 0) {
        store_sums<kBefore>(units.sums[1 - turn]);
      }
    }
    multiply<kSet>(x);
    if (units.count > 1) {
      add_sums(units.sums[turn], units.places[turn], panel_floats);
    }
    if constexpr (kSets == 2) {
      if (units.count > 0) {
        store_sums<kBefore>(units.sums[1 - turn]);
      }
    }
    units.places[turn] = place;
    ++units.count;
  }

  template <int turn>
  static WHIMBREL_INLINE void finish(TileUnits& units, size_t panel_floats) {
    if (units.count > 1) {
      add_sums(units.sums[turn], units.places[turn], panel_floats);
    }
    store_sums<(1 - turn) % kSets>(units.sums[1 - turn]);
    add_sums(units.sums[1 - turn], units.places[1 - turn], panel_floats);
  }

  static WHIMBREL_INLINE TilePlace
  place_of(const CodesProduct& p, const std::byte* block, int group, float* out) {
    const size_t place = static_cast<size_t>(group) * p.x->padded_rows() + p.first_tile * kTileRows;
    TilePlace found;
    unroll<panels>([&](auto q) __attribute__((always_inline)) {
      found.affine[q.value] = load_affine(block + q.value * p.layout.panel_bytes(), p.layout);
    });
    found.x_scales = p.x->scales + place;
    found.x_sums = p.x->sums + place;
    found.out = out;
    return found;
  }

  /// All tiles of rows times the group in tiles.
  static WHIMBREL_INLINE void run_units(
      TileUnits& units, const CodesProduct& p, const std::byte* block, int group, float* out
  ) {
    const size_t panel_floats = static_cast<size_t>(p.tiles) * kTileRows * kLanes;
    TilePlace place = place_of(p, block, group, out);
    const int8_t* x = p.x->tile(group, p.first_tile);
    for (int tile = 0; tile < p.tiles; ++tile) {
      if (units.count % 2 == 0) {
        run_unit<0>(units, x, place, panel_floats);
      } else {
        run_unit<1>(units, x, place, panel_floats);
      }
      x += 2 * kTileRows * group_size;
      place.x_scales += kTileRows;
      place.x_sums += kTileRows;
      place.out += kTileRows * kLanes;
    }
  }

  /// `sets` times `panels` panels from `panel` on, side by side, a group of each in turn. Codes are
  /// unpacked one turn ahead: a tile can't be loaded while its bytes are being stored.
  static void product(const CodesProduct& p, int panel, int sets) {
    const Tiles tiles(shapes());
    TileCodes codes[2];
    TileUnits units;
    const size_t panel_floats = static_cast<size_t>(p.tiles) * kTileRows * kLanes;
    const size_t set_bytes = panels * p.layout.panel_bytes();
    const std::byte* first = p.panel + panel * p.layout.panel_bytes();
    float* out = p.out + panel * panel_floats;
    clear(out, sets * panels * p.tiles * kTileRows * kLanes);
    const auto block_of = [&](int turn) {
      return first + turn % sets * set_bytes + turn / sets * p.layout.block_bytes();
    };
    const int turns = sets * p.layout.groups;
    unpack_group(first, p.layout, codes[0]);
    for (int turn = 0; turn < turns; ++turn) {
      if (turn + 1 < turns) {
        unpack_group(block_of(turn + 1), p.layout, codes[(turn + 1) % 2]);
      }
      load_codes(codes[turn % 2]);
      float* set_out = out + static_cast<size_t>(turn % sets) * panels * panel_floats;
      run_units(units, p, block_of(turn), turn / sets, set_out);
    }
    if (units.count % 2 == 0) {
      finish<0>(units, panel_floats);
    } else {
      finish<1>(units, panel_floats);
    }
  }
};

template <int bits, int group_size>
void tile_products(const CodesProduct& p) {
  const int pairs = p.panels / 2;
  constexpr int kPairs = kStreams / 2;  // side by side
  for (int pair = 0; pair < pairs; pair += kPairs) {
    TileKernel<bits, group_size, 2>::product(p, 2 * pair, smaller(kPairs, pairs - pair));
  }
  if (p.panels % 2 != 0) {
    TileKernel<bits, group_size, 1>::product(p, p.panels - 1, 1);
  }
}

inline void codes_product_on_tiles(const CodesProduct& p) {
  if (p.x->tile_rows != kTileRows) {
    return codes_product(p);
  }
  for_codes(p.layout, [&](auto bits, auto group_size) {
    tile_products<bits.value, group_size.value>(p);
  });
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
