// Products of affine codes with rows in bfloat16, on tiles. Offsets come first, then codes, of
// which a group's sum is scaled in float32.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

template <int bits, int group_size, int panels>
struct CodesBf16Kernel {
  using Product = CodesBf16Product;

  static constexpr int kPanels = panels;
  static constexpr int kStep = group_size < 64 ? group_size : 64;  // inputs in tiles at a time
  static constexpr int kParts = kStep / kBf16TileInputs;
  static constexpr int kStepsAGroup = group_size / kStep;
  static constexpr int kSteps = kChunkInputs / kStep;
  static constexpr int kStepNumbers = kStep * kLanes;
  static constexpr int kTileNumbers = kBf16TileInputs * kRoundedTileRows;
  static constexpr int kRowBytes = 64;
  static constexpr int kPartCodes = kBf16TileInputs * kLanes;

  struct Weights {
    alignas(64) uint16_t codes[panels][kSteps * kStepNumbers];
    alignas(64) float scales[kSteps][panels][kLanes];
  };

  struct Sums {
    alignas(64) float numbers[panels][kTileSums];
  };

  struct Place {
    const float* scales = nullptr;  // [panels][16]
    float* out = nullptr;           // of the first panel
  };

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

  template <int sum, int x, int w>
  static WHIMBREL_INLINE void dot() {
    tile_dot_bf16<sum, x, w>();
  }

  static Place place(
      const Product& /*p*/, const Weights& w, int /*first*/, int step, int /*tile*/, float* out
  ) {
    return {w.scales[step][0], out};
  }

  /// All loads stand before the stores, for the compiler can't know that they differ.
  static WHIMBREL_INLINE void add_sums(const Sums& sums, const Place& place, size_t panel_floats) {
    unroll<panels>([&](auto p) __attribute__((always_inline)) {
      const F32 scale = load(place.scales + p.value * kLanes);
      const float* numbers = sums.numbers[p.value];
      float* out = place.out + p.value * panel_floats;
      F32 acc[kRoundedTileRows];
      unroll<kRoundedTileRows>([&](auto row) __attribute__((always_inline)) {
        constexpr int kAt = decltype(row)::value * kLanes;
        acc[row.value] = fma(load(numbers + kAt), scale, load(out + kAt));
      });
      unroll<kRoundedTileRows>([&](auto row) __attribute__((always_inline)) {
        store(out + row.value * kLanes, acc[row.value]);
      });
    });
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
  const Tiles tiles(shapes_for_rows(64, kBf16TileInputs / 2));
  const int pairs_end = p.panels / 2 * 2;
  for (int panel = 0; panel < pairs_end; panel += 2) {
    OffsetsKernel::product<2>(p, panel);
  }
  if (pairs_end < p.panels) {
    OffsetsKernel::product<1>(p, pairs_end);
  }
  add_panels<CodesBf16Kernel, bits, group_size>(p);
}

inline void codes_bf16_product_on_tiles(const CodesBf16Product& p) {
  for_codes(p.layout, [&](auto bits, auto group_size) {
    codes_bf16_product_of<bits.value, group_size.value>(p);
  });
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
