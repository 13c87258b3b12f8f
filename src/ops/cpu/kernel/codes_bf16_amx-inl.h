// Products of affine codes with rows in bfloat16, on tiles. The codes of two panels and a step of
// at most 64 inputs stay in tiles while rows pass, 16 at a time. Their sums are stored, scaled and
// added to `out` by vectors while the tiles multiply the next rows.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

/// Inputs of a panel that are unpacked at a time; what all rows pass over.
constexpr int kChunkInputs = 512;

/// Tiles of rows that pass over a step while it is in tiles: their sums stay in the first cache.
constexpr int kBlockTiles = 8;

constexpr int kTileSums = kBf16TileRows * kLanes;

/// Sums of 16 rows and a step that are still to be scaled and added to their place in `out`. One
/// set is made while the other one is added.
template <int panels>
struct SumsUnderWay {
  alignas(64) float sums[2][panels][kTileSums] = {};
  const float* scales[2] = {};  // [panels][16]
  float* out[2] = {};           // of the first panel
};

/// Tiles of the hardware: sums [panels], x [parts], weights [panels][parts].
template <int bits, int group_size, int panels>
struct CodesBf16Kernel {
  static constexpr int kX = 2;
  static constexpr int kWeights = 4;

  static constexpr int kStep = group_size < 64 ? group_size : 64;  // inputs in tiles at a time
  static constexpr int kParts = kStep / kBf16TileInputs;
  static constexpr int kStepsAGroup = group_size / kStep;
  static constexpr int kSteps = kChunkInputs / kStep;
  static constexpr int kStepNumbers = kStep * kLanes;
  static constexpr int kTileNumbers = kBf16TileInputs * kLanes;

  using Sums = SumsUnderWay<panels>;

  /// A chunk of the panels.
  struct Weights {
    alignas(64) uint16_t codes[panels][kSteps * kStepNumbers];
    alignas(64) float scales[kSteps][panels][kLanes];
  };

  static TileShapes shapes() {
    TileShapes shapes;
    for (int tile = 0; tile < 8; ++tile) {
      shapes.rows[tile] = kBf16TileRows;
      shapes.row_bytes[tile] = 64;
    }
    return shapes;
  }

  /// Groups [first, end) of a panel, which is the `place`th of w.
  static void unpack_chunk(
      const std::byte* panel, const CodesLayout& layout, int first, int end, int place, Weights& w
  ) {
    uint16_t* codes = w.codes[place];
    int step = 0;
    for (int group = first; group < end; ++group) {
      const std::byte* block = panel + group * layout.block_bytes();
      prefetch_lines<CodesKernel<bits, group_size>::kLines>(block);
      unroll<group_size / 4>([&](auto v) __attribute__((always_inline)) {
        store_codes_as_bf16<bits>(
            codes + 4 * v.value * kLanes, unpack<bits, group_size, v.value>(block)
        );
      });
      codes += group_size * kLanes;
      const F32 scale = load_affine(block, layout).scale;
      for (int i = 0; i < kStepsAGroup; ++i, ++step) {
        store(w.scales[step][place], scale);
      }
    }
  }

  static WHIMBREL_INLINE void load_step(const Weights& w, int step) {
    unroll<panels>([&](auto p) __attribute__((always_inline)) {
      unroll<kParts>([&](auto part) __attribute__((always_inline)) {
        constexpr int kPart = decltype(part)::value;
        tile_load<kWeights + p.value * kParts + kPart>(
            w.codes[p.value] + step * kStepNumbers + kPart * kTileNumbers, 64
        );
      });
    });
  }

  /// Products of a tile of rows with the step in tiles. Between two that wait for each other stands
  /// one that does not.
  static WHIMBREL_INLINE void multiply(const uint16_t* x, size_t x_parts_apart) {
    unroll<kParts>([&](auto part) __attribute__((always_inline)) {
      tile_load<kX + part.value>(x + part.value * x_parts_apart, 64);
    });
    unroll<panels>([](auto p) __attribute__((always_inline)) { tile_zero<p.value>(); });
    unroll<kParts>([](auto part) __attribute__((always_inline)) {
      constexpr int kPart = decltype(part)::value;
      unroll<panels>([](auto p) __attribute__((always_inline)) {
        tile_dot_bf16<p.value, kX + kPart, kWeights + p.value * kParts + kPart>();
      });
    });
  }

  /// All loads stand before the stores, for the compiler can't know that they differ.
  static WHIMBREL_INLINE void add_sums(const Sums& under_way, int set, size_t panel_floats) {
    unroll<panels>([&](auto p) __attribute__((always_inline)) {
      const F32 scale = load(under_way.scales[set] + p.value * kLanes);
      const float* sums = under_way.sums[set][p.value];
      float* out = under_way.out[set] + p.value * panel_floats;
      F32 acc[kBf16TileRows];
      unroll<kBf16TileRows>([&](auto row) __attribute__((always_inline)) {
        constexpr int kAt = decltype(row)::value * kLanes;
        acc[row.value] = fma(load(sums + kAt), scale, load(out + kAt));
      });
      unroll<kBf16TileRows>([&](auto row) __attribute__((always_inline)) {
        store(out + row.value * kLanes, acc[row.value]);
      });
    });
  }

  static WHIMBREL_INLINE void store_sums(Sums& under_way, int set) {
    unroll<panels>([&](auto p) __attribute__((always_inline)) {
      tile_store<p.value>(under_way.sums[set][p.value], 64);
    });
  }

  /// Adds groups [first, end), at most a chunk, of the panels from `panel` on.
  static void add_chunk(const CodesBf16Product& p, int panel, int first, int end) {
    const size_t panel_floats = static_cast<size_t>(p.tiles) * kTileSums;
    Weights w;
    for (int i = 0; i < panels; ++i) {
      unpack_chunk(p.panel + (panel + i) * p.layout.panel_bytes(), p.layout, first, end, i, w);
    }
    const int steps = (end - first) * kStepsAGroup;
    const size_t parts_apart = static_cast<size_t>(p.x->tiles) * kTileNumbers;
    Sums under_way;
    int set = 0;
    bool any = false;
    for (int tile = 0; tile < p.tiles; tile += kBlockTiles) {
      const int last = smaller(p.tiles, tile + kBlockTiles);
      for (int step = 0; step < steps; ++step) {
        load_step(w, step);
        const uint16_t* x = p.x->tile((first * kStepsAGroup + step) * kParts, p.first_tile + tile);
        float* out = p.out + panel * panel_floats + static_cast<size_t>(tile) * kTileSums;
        for (int t = tile; t < last; ++t, x += kTileNumbers, out += kTileSums) {
          multiply(x, parts_apart);
          if (any) {
            add_sums(under_way, 1 - set, panel_floats);
          }
          store_sums(under_way, set);
          under_way.scales[set] = w.scales[step][0];
          under_way.out[set] = out;
          set = 1 - set;
          any = true;
        }
      }
    }
    add_sums(under_way, 1 - set, panel_floats);
  }
};

/// Offsets of groups as a panel of bfloat16 for the rows of Bf16Rows::sums: h, h, l, l, where h + l
/// is the offset, exactly so unless it is a float32.
struct OffsetsKernel {
  static constexpr int kGroups = 32;  // at a time
  static constexpr int kGroupNumbers = Bf16Rows::kSumsAGroup * kLanes;
  static constexpr int kPanelNumbers = kGroups * kGroupNumbers;

  struct Offsets {
    alignas(64) uint16_t numbers[2][kPanelNumbers];
  };

  static void load_offsets(
      const std::byte* block, const CodesLayout& layout, int groups, uint16_t* numbers
  ) {
    for (int group = 0; group < kGroups; ++group, numbers += kGroupNumbers) {
      U8 high = splat_u8(0);
      U8 low = splat_u8(0);
      if (group < groups) {
        const F32 offset = load_affine(block + group * layout.block_bytes(), layout).offset;
        high = bf16_twice(offset);
        low = bf16_twice(sub(offset, low_bf16(high)));
      }
      store_u8(numbers, high);
      store_u8(numbers + 2 * kLanes, low);
    }
  }

  /// out = the sums of groups times their offsets, for `panels` panels from `panel` on.
  template <int panels>
  static void product(const CodesBf16Product& p, int panel) {
    Offsets offsets;
    for (int first = 0; first < p.layout.groups; first += kGroups) {
      const int groups = smaller(kGroups, p.layout.groups - first);
      for (int i = 0; i < panels; ++i) {
        const std::byte* from = p.panel + (panel + i) * p.layout.panel_bytes();
        load_offsets(from + first * p.layout.block_bytes(), p.layout, groups, offsets.numbers[i]);
      }
      int tile = 0;
      for (; tile + 2 <= p.tiles; tile += 2) {
        add_tiles<2, panels>(p, panel, first, groups, tile, offsets);
      }
      if (tile < p.tiles) {
        add_tiles<1, panels>(p, panel, first, groups, tile, offsets);
      }
    }
  }

  template <int tiles, int panels>
  static void add_tiles(
      const CodesBf16Product& p, int panel, int first, int groups, int tile, const Offsets& offsets
  ) {
    using Kernel = Bf16Kernel<tiles, panels>;
    const size_t panel_floats = static_cast<size_t>(p.tiles) * kBf16TileRows * kLanes;
    float* out = p.out + panel * panel_floats + tile * kBf16TileRows * kLanes;
    if (first == 0) {
      Kernel::for_sums(out, panel_floats, [](auto sums, float*) {
        tile_zero<decltype(sums)::value>();
      });
    } else {
      Kernel::for_sums(out, panel_floats, [](auto sums, const float* from) {
        tile_load<decltype(sums)::value>(from, 64);
      });
    }
    const uint16_t* x = p.x->sums_of((p.first_tile + tile) * kBf16TileRows);
    const int width = groups * Bf16Rows::kSumsAGroup;
    for (int k = 0; k < width; k += kBf16TileInputs) {
      Kernel::add_inputs(
          x + first * Bf16Rows::kSumsAGroup + k,
          static_cast<size_t>(p.x->sums_width()),
          reinterpret_cast<const std::byte*>(offsets.numbers[0] + k * kLanes),
          sizeof(offsets.numbers[0])
      );
    }
    Kernel::for_sums(out, panel_floats, [](auto sums, float* to) {
      tile_store<decltype(sums)::value>(to, 64);
    });
  }
};

template <int bits, int group_size>
void codes_bf16_product_of(const CodesBf16Product& p) {
  using Two = CodesBf16Kernel<bits, group_size, 2>;
  using One = CodesBf16Kernel<bits, group_size, 1>;
  const Tiles tiles(Two::shapes());
  const int pairs_end = p.panels / 2 * 2;
  for (int panel = 0; panel < pairs_end; panel += 2) {
    OffsetsKernel::product<2>(p, panel);
  }
  if (pairs_end < p.panels) {
    OffsetsKernel::product<1>(p, pairs_end);
  }
  constexpr int kChunkGroups = kChunkInputs / group_size;
  for (int first = 0; first < p.layout.groups; first += kChunkGroups) {
    const int end = smaller(p.layout.groups, first + kChunkGroups);
    for (int panel = 0; panel < pairs_end; panel += 2) {
      Two::add_chunk(p, panel, first, end);
    }
    if (pairs_end < p.panels) {
      One::add_chunk(p, pairs_end, first, end);
    }
  }
}

template <int bits>
void codes_bf16_product_of(const CodesBf16Product& p) {
  switch (p.layout.group_size) {
    case 32:
      return codes_bf16_product_of<bits, 32>(p);
    case 64:
      return codes_bf16_product_of<bits, 64>(p);
    default:
      return codes_bf16_product_of<bits, 128>(p);
  }
}

inline void codes_bf16_product_on_tiles(const CodesBf16Product& p) {
  switch (p.layout.bits) {
    case 2:
      return codes_bf16_product_of<2>(p);
    case 3:
      return codes_bf16_product_of<3>(p);
    case 4:
      return codes_bf16_product_of<4>(p);
    case 5:
      return codes_bf16_product_of<5>(p);
    case 6:
      return codes_bf16_product_of<6>(p);
    default:
      return codes_bf16_product_of<8>(p);
  }
}

/// Rounds a group -> the sum of its rounded numbers.
inline float round_group(const float* x, const Bf16Rows& out, int row, int group) {
  F32 total = zero_f32();
  for (int i = 0; i < out.group_size; i += kBf16TileInputs) {
    const int part = (group * out.group_size + i) / kBf16TileInputs;
    uint16_t* y = out.tile(part, row / kBf16TileRows) + row % kBf16TileRows * kBf16TileInputs;
    store_bf16(y, load(x + i));
    store_bf16(y + kLanes, load(x + i + kLanes));
    total = add(total, add(load_bf16(y), load_bf16(y + kLanes)));
  }
  return sum(total);
}

inline void round_row(const float* x, const Bf16Rows& out, int row) {
  uint16_t* sums = out.sums_of(row);
  for (int i = out.groups * Bf16Rows::kSumsAGroup; i < out.sums_width(); ++i) {
    sums[i] = 0;
  }
  for (int group = 0; group < out.groups; ++group, sums += Bf16Rows::kSumsAGroup) {
    const F32 total = splat(round_group(x + group * out.group_size, out, row, group));
    uint16_t high[kLanes];
    uint16_t low[kLanes];
    store_bf16(high, total);
    store_bf16(low, sub(total, load_bf16(high)));
    sums[0] = sums[2] = high[0];
    sums[1] = sums[3] = low[0];
  }
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
