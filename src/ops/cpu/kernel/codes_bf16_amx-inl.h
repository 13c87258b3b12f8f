// Products of affine codes with rows in bfloat16, on tiles. 16 rows times 16 outputs and a step of
// at most 64 inputs are a unit: two tile products, whose sums are stored, scaled and added to `out`
// by vectors while the tiles multiply for the next ones. The order of the instructions decides:
// with two products in a row that wait for each other, a unit takes twice as long.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

/// Inputs of a panel that are unpacked at a time; what all rows pass over.
constexpr int kChunkInputs = 512;

/// Tiles of rows that pass over a step while it is in tiles: their sums stay in the first cache.
constexpr int kBlockTiles = 8;

/// Units under way. A unit's number modulo kUnits is its slot: a tile of the hardware for its sums,
/// then a place in memory.
struct UnitsUnderWay {
  static constexpr int kUnits = 4;

  alignas(64) float sums[kUnits][kRoundedTileRows * kLanes] = {};
  alignas(64) float scales[kUnits][kLanes] = {};
  alignas(64) float nowhere[kRoundedTileRows * kLanes] = {};  // where units that are none add to
  float* out[kUnits] = {nowhere, nowhere, nowhere, nowhere};
  const uint16_t* second = nullptr;  // tile of x that the unit before has still to multiply
};

/// Tiles of the hardware: sums [slots], x [2], weights [2].
template <int bits, int group_size>
struct CodesBf16Kernel {
  static constexpr int kUnits = UnitsUnderWay::kUnits;
  static constexpr int kX = 4;
  static constexpr int kWeights = 6;

  static constexpr int kStep = group_size < 64 ? group_size : 64;  // inputs of a unit
  static constexpr int kParts = kStep / kBf16TileInputs;
  static constexpr int kStepsAGroup = group_size / kStep;
  static constexpr int kSteps = kChunkInputs / kStep;
  static constexpr int kStepNumbers = kStep * kLanes;
  static constexpr int kTileNumbers = kBf16TileInputs * kLanes;

  /// A chunk of up to two panels.
  struct Weights {
    alignas(64) uint16_t codes[2][kSteps * kStepNumbers];
    alignas(64) float scales[2][kSteps][kLanes];
  };

  static TileShapes shapes() {
    TileShapes shapes;
    for (int tile = 0; tile < 8; ++tile) {
      shapes.rows[tile] = kRoundedTileRows;
      shapes.row_bytes[tile] = 64;
    }
    return shapes;
  }

  /// Groups [first, end) of a panel.
  static void unpack_chunk(
      const std::byte* panel,
      const CodesLayout& layout,
      int first,
      int end,
      uint16_t* codes,
      float (*scales)[kLanes]
  ) {
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
      for (int step = 0; step < kStepsAGroup; ++step, ++scales) {
        store(*scales, scale);
      }
    }
  }

  /// What all rows of a burst have in common: a step of a panel.
  struct Step {
    const uint16_t* codes;
    const float* scales;
    size_t x_parts_apart;  // numbers from a tile of x to that of the next 32 inputs
  };

  /// Begins unit `slot` and goes on with the ones before it.
  template <int slot>
  static WHIMBREL_INLINE void run_unit(
      UnitsUnderWay& units, const Step& step, bool first, const uint16_t* x, float* out
  ) {
    constexpr int kBefore = (slot + kUnits - 1) % kUnits;
    if constexpr (kParts == 2) {
      tile_load<kX + 1>(units.second, 64);
      tile_zero<slot>();
      tile_dot_bf16<kBefore, kX + 1, kWeights + 1>();
      if (first) {
        tile_load<kWeights + 1>(step.codes + kTileNumbers, 64);
      }
      units.second = x + step.x_parts_apart;
    } else {
      tile_zero<slot>();
    }
    if (first) {
      tile_load<kWeights>(step.codes, 64);
    }
    tile_load<kX>(x, 64);
    tile_dot_bf16<slot, kX, kWeights>();
    constexpr int kToStore = (slot + kUnits - 2) % kUnits;
    tile_store<kToStore>(units.sums[kToStore], 64);
    add_sums<(slot + kUnits - 3) % kUnits>(units);
    store(units.scales[slot], load(step.scales));
    units.out[slot] = out;
  }

  /// All loads stand before the stores, for the compiler can't know that they differ.
  template <int slot>
  static WHIMBREL_INLINE void add_sums(const UnitsUnderWay& units) {
    const F32 scale = load(units.scales[slot]);
    float* out = units.out[slot];
    F32 acc[kRoundedTileRows];
    unroll<kRoundedTileRows>([&](auto row) __attribute__((always_inline)) {
      constexpr int kAt = decltype(row)::value * kLanes;
      acc[row.value] = fma(load(units.sums[slot] + kAt), scale, load(out + kAt));
    });
    unroll<kRoundedTileRows>([&](auto row) __attribute__((always_inline)) {
      store(out + row.value * kLanes, acc[row.value]);
    });
  }

  static WHIMBREL_INLINE void run_unit_at(
      int slot, UnitsUnderWay& units, const Step& step, bool first, const uint16_t* x, float* out
  ) {
    switch (slot) {
      case 0:
        return run_unit<0>(units, step, first, x, out);
      case 1:
        return run_unit<1>(units, step, first, x, out);
      case 2:
        return run_unit<2>(units, step, first, x, out);
      default:
        return run_unit<3>(units, step, first, x, out);
    }
  }

  /// Adds groups [first, end), at most a chunk, of `panels` panels from `panel` on.
  static void add_chunk(const CodesBf16Product& p, int panel, int panels, int first, int end) {
    const size_t panel_bytes = p.layout.panel_bytes();
    const size_t panel_floats = static_cast<size_t>(p.tiles) * kRoundedTileRows * kLanes;
    Weights w;
    for (int i = 0; i < panels; ++i) {
      const std::byte* from = p.panel + (panel + i) * panel_bytes;
      unpack_chunk(from, p.layout, first, end, w.codes[i], w.scales[i]);
    }
    UnitsUnderWay units;
    units.second = p.x->tile(0, p.first_tile);
    int slot = 0;
    const int first_step = first * kStepsAGroup;
    const int steps = (end - first) * kStepsAGroup;
    const size_t parts_apart = static_cast<size_t>(p.x->tiles) * kTileNumbers;
    for (int tile = 0; tile < p.tiles; tile += kBlockTiles) {
      const int last = smaller(p.tiles, tile + kBlockTiles);
      for (int s = 0; s < steps; ++s) {
        for (int i = 0; i < panels; ++i) {
          const Step step{w.codes[i] + s * kStepNumbers, w.scales[i][s], parts_apart};
          const uint16_t* x = p.x->tile((first_step + s) * kParts, p.first_tile + tile);
          float* out = p.out + (panel + i) * panel_floats + tile * kRoundedTileRows * kLanes;
          for (int t = tile; t < last; ++t) {
            run_unit_at(slot, units, step, t == tile, x, out);
            slot = (slot + 1) % kUnits;
            x += kTileNumbers;
            out += kRoundedTileRows * kLanes;
          }
        }
      }
    }
    finish(units, slot, {w.codes[0], w.scales[0][0], 0}, p.x->tile(0, p.first_tile));
  }

  /// Lets the last units come to their end.
  static void finish(UnitsUnderWay& units, int slot, const Step& step, const uint16_t* x) {
    for (int i = 1; i < kUnits; ++i) {
      run_unit_at(slot, units, step, false, x, units.nowhere);
      slot = (slot + 1) % kUnits;
    }
  }
};

/// Offsets of groups as a panel of bfloat16 for the rows of Bf16Rows::sums: h, h, l, l, where h + l
/// is the offset, exactly so unless it is a float32.
struct OffsetsKernel {
  static constexpr int kGroups = 32;  // at a time
  static constexpr int kGroupNumbers = kSumsAGroup * kLanes;
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
    const size_t panel_floats = static_cast<size_t>(p.tiles) * kRoundedTileRows * kLanes;
    float* out = p.out + panel * panel_floats + tile * kRoundedTileRows * kLanes;
    if (first == 0) {
      Kernel::for_sums(out, panel_floats, [](auto sums, float*) {
        tile_zero<decltype(sums)::value>();
      });
    } else {
      Kernel::for_sums(out, panel_floats, [](auto sums, const float* from) {
        tile_load<decltype(sums)::value>(from, 64);
      });
    }
    const uint16_t* x = p.x->sums_of((p.first_tile + tile) * kRoundedTileRows);
    const int width = groups * kSumsAGroup;
    for (int k = 0; k < width; k += kBf16TileInputs) {
      Kernel::add_inputs(
          x + first * kSumsAGroup + k,
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
  using Kernel = CodesBf16Kernel<bits, group_size>;
  const Tiles tiles(Kernel::shapes());
  int panel = 0;
  for (; panel + 2 <= p.panels; panel += 2) {
    OffsetsKernel::product<2>(p, panel);
  }
  if (panel < p.panels) {
    OffsetsKernel::product<1>(p, panel);
  }
  constexpr int kChunkGroups = kChunkInputs / group_size;
  for (int first = 0; first < p.layout.groups; first += kChunkGroups) {
    const int end = smaller(p.layout.groups, first + kChunkGroups);
    for (panel = 0; panel < p.panels; panel += 2) {
      Kernel::add_chunk(p, panel, smaller(2, p.panels - panel), first, end);
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
    uint16_t* y = out.tile(part, row / kRoundedTileRows) + row % kRoundedTileRows * kBf16TileInputs;
    store_bf16(y, load(x + i));
    store_bf16(y + kLanes, load(x + i + kLanes));
    total = add(total, add(load_bf16(y), load_bf16(y + kLanes)));
  }
  return sum(total);
}

inline void round_row(const float* x, const Bf16Rows& out, int row) {
  clear_sums_behind(out.groups, out.sums_of(row));
  for (int group = 0; group < out.groups; ++group) {
    const float total = round_group(x + group * out.group_size, out, row, group);
    store_group_sum(total, out.sums_of(row) + group * kSumsAGroup);
  }
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
