// Products of affine codes with rows of 8-bit integers, for whoever takes their error for their
// speed. Sums over a group are exact, and their scaling is rounded in the same places everywhere.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

/// One group of a row: x = scale * integer -> the sum of the integers.
inline int32_t int8_group(const float* x, float inverse, const Int8Rows& out, int row, int group) {
  I32 total = zero_i32();
  for (int i = 0; i < out.group_size; i += kLanes) {
    const int input = group * out.group_size + i;
    const int part = input / out.part_inputs();
    int8_t* tile = out.tile(part, row / kRoundedTileRows);
    const I32 integer = to_i32(mul(load(x + i), splat(inverse)));
    store_bytes(
        tile + row % kRoundedTileRows * out.part_inputs() + input % out.part_inputs(), integer
    );
    total = add(total, integer);
  }
  return sum(total);
}

inline void int8_row(const float* x, const Int8Rows& out, int row) {
  constexpr float kLargest = 127;
  constexpr float kSmallest = 1e-30F;  // below it 1 / scale would be no float
  for (int group = 0; group < out.groups; ++group, x += out.group_size) {
    const float size = largest_size(x, out.group_size);
    const float scale = size < kSmallest ? 0.0F : size / kLargest;
    const float inverse = size < kSmallest ? 0.0F : kLargest / size;
    const int32_t total = int8_group(x, inverse, out, row, group);
    out.scales_of(group)[row] = scale;
    out.sums_of(group)[row] = scale * static_cast<float>(total);
  }
}

template <int bits, int group_size>
struct CodesInt8Kernel {
  using Codes = CodesKernel<bits, group_size>;
  static constexpr int kChunkGroups = 512 / group_size;  // whose x stays in the second cache
  static constexpr int kPartInputs = group_size < 64 ? group_size : 64;
  static constexpr int kParts = group_size / kPartInputs;

  /// Codes times the integers of a row's group. Even and odd inputs in sums of their own: a dot
  /// product waits for the one before it.
  static WHIMBREL_INLINE I32 dot_row(const U8* w, const int8_t* x, size_t parts_apart) {
    I32 sums[2] = {zero_i32(), zero_i32()};
    unroll<Codes::kVectors>([&](auto v) __attribute__((always_inline)) {
      constexpr int kInput = 4 * decltype(v)::value;
      constexpr int kChain = decltype(v)::value % 2;
      const int8_t* part = x + kInput / kPartInputs * parts_apart;
      sums[kChain] = Codes::dot(sums[kChain], w[v.value], part + kInput % kPartInputs);
    });
    return add(sums[0], sums[1]);
  }

  /// Adds a group's products to out [tiles * 16][16].
  static void add_block(const std::byte* block, const CodesInt8Product& p, int group, float* out) {
    const Int8Rows& x = *p.x;
    const Affine affine = load_affine(block, p.layout);
    U8 w[Codes::kVectors];
    Codes::unpack_block(block, w);
    const size_t parts_apart = static_cast<size_t>(x.tiles) * kRoundedTileRows * kPartInputs;
    const int first = p.first_tile * kRoundedTileRows;
    const int end = first + p.tiles * kRoundedTileRows;
    const int8_t* numbers = x.tile(group * kParts, p.first_tile);
    const float* scales = x.scales_of(group);
    const float* sums = x.sums_of(group);
    for (int row = first; row < end; ++row, numbers += kPartInputs, out += kLanes) {
      const I32 dots = dot_row(w, numbers, parts_apart);
      store(out, add_group(load(out), dots, scales[row], sums[row], affine));
    }
  }

  /// All panels pass over a chunk of groups before the next one.
  static void product(const CodesInt8Product& p) {
    const int panel_floats = p.tiles * kRoundedTileRows * kLanes;
    clear(p.out, p.panels * panel_floats);
    for (int first = 0; first < p.layout.groups; first += kChunkGroups) {
      const int end = smaller(p.layout.groups, first + kChunkGroups);
      for (int panel = 0; panel < p.panels; ++panel) {
        const std::byte* blocks = p.panel + panel * p.layout.panel_bytes();
        float* out = p.out + static_cast<size_t>(panel) * panel_floats;
        for (int group = first; group < end; ++group) {
          const std::byte* block = blocks + group * p.layout.block_bytes();
          prefetch_lines<Codes::kLines>(block);
          add_block(block, p, group, out);
        }
      }
    }
  }
};

inline void codes_int8_product(const CodesInt8Product& p) {
  for_codes(p.layout, [&](auto bits, auto group_size) {
    CodesInt8Kernel<bits.value, group_size.value>::product(p);
  });
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
