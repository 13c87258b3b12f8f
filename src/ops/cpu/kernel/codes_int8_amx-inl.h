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
  static constexpr int kRowBytes = kPartInputs;
  static constexpr int kPartCodes = kPartInputs * kLanes;
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

  template <int sum, int x, int w>
  static WHIMBREL_INLINE void dot() {
    tile_dot_bytes<sum, x, w>();
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
  constexpr int kRowBytes = TiledInt8Kernel<bits, group_size, 2>::kRowBytes;
  const Tiles tiles(shapes_for_rows(kRowBytes, kRowBytes / 4));
  clear(p.out, p.panels * p.tiles * kTileSums);
  add_panels<TiledInt8Kernel, bits, group_size>(p);
}

inline void tiled_int8_product(const CodesInt8Product& p) {
  for_codes(p.layout, [&](auto bits, auto group_size) {
    tiled_int8_product_of<bits.value, group_size.value>(p);
  });
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
