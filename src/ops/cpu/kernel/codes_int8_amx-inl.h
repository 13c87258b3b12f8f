// Products of affine codes with rows of 8-bit integers, on tiles. Every step of the arithmetic is
// that of codes_int8-inl.h, so the bits are the same.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

template <int bits, int group_size, int panels>
struct TiledInt8Kernel {
  using Product = CodesInt8Product;

  static constexpr int kPanels = panels;
  static constexpr int kPartInputs = group_size < 64 ? group_size : 64;
  static constexpr int kParts = group_size / kPartInputs;
  static constexpr int kStepsAGroup = 1;
  static constexpr int kTileNumbers = kPartInputs * kRoundedTileRows;
  static constexpr int kGroups = kChunkInputs / group_size;  // of a chunk
  static constexpr int kGroupCodes = group_size * kLanes;

  struct Weights {
    alignas(64) uint8_t codes[panels][kGroups * kGroupCodes];
    alignas(64) float scales[kGroups][panels][kLanes];
    alignas(64) float offsets[kGroups][panels][kLanes];
  };

  struct Sums {
    alignas(64) int32_t numbers[panels][kTileSums];
  };

  struct Place {
    const float* scales = nullptr;    // [panels][16]
    const float* offsets = nullptr;   // [panels][16]
    const float* x_scales = nullptr;  // [16]
    const float* x_sums = nullptr;    // [16]
    float* out = nullptr;             // of the first panel
  };

  /// Groups [first, end) of a panel, which is the `place`th of w.
  static void unpack_chunk(
      const std::byte* panel, const CodesLayout& layout, int first, int end, int place, Weights& w
  ) {
    uint8_t* codes = w.codes[place];
    for (int group = first; group < end; ++group, codes += kGroupCodes) {
      const std::byte* block = panel + group * layout.block_bytes();
      prefetch_lines<CodesKernel<bits, group_size>::kLines>(block);
      unroll<group_size / 4>([&](auto v) __attribute__((always_inline)) {
        store_u8(codes + 64 * v.value, unpack<bits, group_size, v.value>(block));
      });
      const Affine affine = load_affine(block, layout);
      store(w.scales[group - first][place], affine.scale);
      store(w.offsets[group - first][place], affine.offset);
    }
  }

  static WHIMBREL_INLINE void load_step(const Weights& w, int group) {
    unroll<panels>([&](auto p) __attribute__((always_inline)) {
      unroll<kParts>([&](auto part) __attribute__((always_inline)) {
        constexpr int kTile = decltype(p)::value * kParts + decltype(part)::value;
        const uint8_t* codes = w.codes[p.value] + group * kGroupCodes;
        tile_load<kFirstWeightTile + kTile>(codes + part.value * kPartInputs * kLanes, 64);
      });
    });
  }

  static WHIMBREL_INLINE void multiply(const int8_t* x, size_t parts_apart) {
    unroll<kParts>([&](auto part) __attribute__((always_inline)) {
      tile_load<kFirstXTile + part.value>(x + part.value * parts_apart, kPartInputs);
    });
    unroll<panels>([](auto p) __attribute__((always_inline)) { tile_zero<p.value>(); });
    unroll<kParts>([](auto part) __attribute__((always_inline)) {
      constexpr int kPart = decltype(part)::value;
      unroll<panels>([](auto p) __attribute__((always_inline)) {
        tile_dot_bytes<p.value, kFirstXTile + kPart, kFirstWeightTile + p.value * kParts + kPart>();
      });
    });
  }

  static WHIMBREL_INLINE void store_sums(Sums& sums) {
    unroll<panels>([&](auto p) __attribute__((always_inline)) {
      tile_store<p.value>(sums.numbers[p.value], 64);
    });
  }

  static Place place(
      const Product& p, const Weights& w, int first, int step, int tile, float* out
  ) {
    const int row = (p.first_tile + tile) * kRoundedTileRows;
    return {
        .scales = w.scales[step][0],
        .offsets = w.offsets[step][0],
        .x_scales = p.x->scales_of(first + step) + row,
        .x_sums = p.x->sums_of(first + step) + row,
        .out = out,
    };
  }

  /// All loads stand before the stores, for the compiler can't know that they differ.
  static WHIMBREL_INLINE void add_sums(const Sums& sums, const Place& place, size_t panel_floats) {
    unroll<panels>([&](auto p) __attribute__((always_inline)) {
      const Affine affine{
          load(place.scales + p.value * kLanes), load(place.offsets + p.value * kLanes)
      };
      const int32_t* numbers = sums.numbers[p.value];
      float* out = place.out + p.value * panel_floats;
      F32 acc[kRoundedTileRows];
      unroll<kRoundedTileRows>([&](auto row) __attribute__((always_inline)) {
        constexpr int kAt = decltype(row)::value * kLanes;
        acc[row.value] = add_group(
            load(out + kAt),
            load(numbers + kAt),
            place.x_scales[row.value],
            place.x_sums[row.value],
            affine
        );
      });
      unroll<kRoundedTileRows>([&](auto row) __attribute__((always_inline)) {
        store(out + row.value * kLanes, acc[row.value]);
      });
    });
  }
};

template <int bits, int group_size>
void tiled_int8_product_of(const CodesInt8Product& p) {
  constexpr int kPartInputs = TiledInt8Kernel<bits, group_size, 2>::kPartInputs;
  const Tiles tiles(shapes_for_rows(kPartInputs, kPartInputs / 4));
  clear(p.out, p.panels * p.tiles * kTileSums);
  add_panels<TiledInt8Kernel, bits, group_size>(p);
}

template <int bits>
void tiled_int8_product_of(const CodesInt8Product& p) {
  switch (p.layout.group_size) {
    case 32:
      return tiled_int8_product_of<bits, 32>(p);
    case 64:
      return tiled_int8_product_of<bits, 64>(p);
    default:
      return tiled_int8_product_of<bits, 128>(p);
  }
}

inline void tiled_int8_product(const CodesInt8Product& p) {
  switch (p.layout.bits) {
    case 2:
      return tiled_int8_product_of<2>(p);
    case 3:
      return tiled_int8_product_of<3>(p);
    case 4:
      return tiled_int8_product_of<4>(p);
    case 5:
      return tiled_int8_product_of<5>(p);
    case 6:
      return tiled_int8_product_of<6>(p);
    default:
      return tiled_int8_product_of<8>(p);
  }
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
