// Products with affine codes. Rows of activations are integers, so the sum over a group is exact;
// only its scaling is rounded, in the same places everywhere.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

/// Bits of the widest plane of codes, and of the one behind it (CodesLayout).
constexpr int first_plane(int bits) {
  return bits == 8 ? 8 : bits >= 4 ? 4 : 2;
}
constexpr int second_plane(int bits) {
  return bits - first_plane(bits);
}

/// Unpacked vector v's share in a plane of `width` bits.
template <int width, int group_size, int v>
WHIMBREL_INLINE U8 plane_bits(const std::byte* plane) {
  constexpr int kVectors = group_size * width / 32;
  constexpr int kShift = width * (v / kVectors);
  U8 x = load_u8(plane + 64 * (v % kVectors));
  if constexpr (kShift > 0) {
    x = shift_words_right<kShift>(x);
  }
  return width == 8 ? x : bit_and(x, splat_u8((1 << width) - 1));
}

/// Codes of inputs 4 v to 4 v + 3 of a block's group, 16 outputs.
template <int bits, int group_size, int v>
WHIMBREL_INLINE U8 unpack(const std::byte* block) {
  constexpr int kFirst = first_plane(bits);
  constexpr int kSecond = second_plane(bits);
  const U8 low = plane_bits<kFirst, group_size, v>(block);
  if constexpr (kSecond == 0) {
    return low;
  } else {
    const std::byte* plane = block + kLanes * group_size * kFirst / 8;
    return bit_or(low, shift_words_left<kFirst>(plane_bits<kSecond, group_size, v>(plane)));
  }
}

/// 16 numbers of a block's scales or offsets.
WHIMBREL_INLINE F32 load_floats(const std::byte* p, Float type) {
  switch (type) {
    case Float::bf16:
      return load_bf16(reinterpret_cast<const uint16_t*>(p));
    case Float::f16:
      return load_f16(reinterpret_cast<const uint16_t*>(p));
    case Float::f32:
      break;
  }
  return load(reinterpret_cast<const float*>(p));
}

struct Affine {
  F32 scale;
  F32 offset;
};

WHIMBREL_INLINE Affine load_affine(const std::byte* block, const CodesLayout& layout) {
  const std::byte* scales = block + layout.code_bytes();
  return {
      load_floats(scales, layout.scales),
      load_floats(scales + kLanes * layout.scale_bytes(), layout.scales)
  };
}

/// What a group adds to a row's 16 outputs; `integer` is the sum of codes times integers of x.
WHIMBREL_INLINE F32 add_group(F32 acc, I32 integer, float x_scale, float x_sum, const Affine& w) {
  acc = fma(mul(to_f32(integer), splat(x_scale)), w.scale, acc);
  return fma(splat(x_sum), w.offset, acc);
}

WHIMBREL_INLINE int smaller(int a, int b) {
  return a < b ? a : b;
}

struct RowRange {
  int first;
  int end;
};

/// Rows of a call, without those that only fill up the last tile.
inline RowRange rows_of(const CodesProduct& p) {
  const int first = p.first_tile * p.x->tile_rows;
  return {first, first + p.rows};
}

inline void clear(float* p, int count) {
  for (int i = 0; i < count; i += kLanes) {
    store(p + i, zero_f32());
  }
}

/// The memory that comes soon: reading a block at a time is a pattern that hardware loses at pages.
template <int lines, int ahead = 2304>
WHIMBREL_INLINE void prefetch_lines(const std::byte* block) {
  unroll<lines>([&](auto line)
                    __attribute__((always_inline)) { prefetch(block + ahead + 64 * line.value); });
}

/// Bytes to fetch ahead in each of kStreams panels that are read side by side.
constexpr int kStreamAhead = 1152;

template <int bits, int group_size>
struct CodesKernel {
  static constexpr int kVectors = group_size / 4;            // of a block, unpacked
  static constexpr int kLines = group_size * bits / 32 + 1;  // of a block, in a cache

  static WHIMBREL_INLINE I32 dot(I32 acc, U8 w, const int8_t* x) {
    return bits == 8 ? dot4_wide_at(acc, w, x) : dot4_at(acc, w, x);
  }

  /// Codes times the integers of a row's group. Even and odd inputs in sums of their own: a dot
  /// product waits for the one before it.
  static WHIMBREL_INLINE I32 dot_row(const U8* w, const int8_t* hi, const int8_t* lo) {
    I32 high[2] = {zero_i32(), zero_i32()};
    I32 low[2] = {zero_i32(), zero_i32()};
    unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
      constexpr int kChain = decltype(v)::value % 2;
      high[kChain] = dot(high[kChain], w[v.value], hi + 4 * v.value);
      low[kChain] = dot(low[kChain], w[v.value], lo + 4 * v.value);
    });
    return add(shift_left<8>(add(high[0], high[1])), add(low[0], low[1]));
  }

  static WHIMBREL_INLINE void unpack_block(const std::byte* block, U8* w) {
    unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
      w[v.value] = unpack<bits, group_size, v.value>(block);
    });
  }

  /// Adds a group's products to the 16 outputs of one row by itself, as in decoding.
  static WHIMBREL_INLINE void add_block_to_row(
      const std::byte* block, const CodesProduct& p, int group, float* out
  ) {
    const SplitRows& x = *p.x;
    U8 w[kVectors];
    unpack_block(block, w);
    const int8_t* hi = x.tile(group, p.first_tile);
    const I32 dots = dot_row(w, hi, hi + group_size);
    const int place = group * x.tiles + p.first_tile;
    const Affine affine = load_affine(block, p.layout);
    store(out, add_group(load(out), dots, x.scales[place], x.sums[place], affine));
  }

  /// Adds a group's products to out [rows][16].
  static WHIMBREL_INLINE void add_block(
      const std::byte* block, const CodesProduct& p, int group, const RowRange& rows, float* out
  ) {
    const SplitRows& x = *p.x;
    const Affine affine = load_affine(block, p.layout);
    U8 w[kVectors];
    unpack_block(block, w);
    const size_t first_row = static_cast<size_t>(group) * x.padded_rows();
    for (int row = rows.first; row < rows.end;) {
      const int8_t* hi = x.hi(group, row);
      const int end = smaller(rows.end, row + x.tile_rows);  // a call starts with a whole tile
      for (; row < end; ++row, hi += group_size, out += kLanes) {
        const I32 dots = dot_row(w, hi, hi + x.tile_rows * group_size);
        const size_t place = first_row + row;
        store(out, add_group(load(out), dots, x.scales[place], x.sums[place], affine));
      }
    }
  }

  /// kStreams panels side by side, a block of each in turn.
  static void product(const CodesProduct& p) {
    const RowRange rows = rows_of(p);
    const bool one_row = p.rows == 1 && p.x->tile_rows == 1;
    const size_t panel_bytes = p.layout.panel_bytes();
    const size_t panel_floats = static_cast<size_t>(p.tiles) * p.x->tile_rows * kLanes;
    for (int panel = 0; panel < p.panels; panel += kStreams) {
      const int streams = smaller(kStreams, p.panels - panel);
      const std::byte* first_block = p.panel + panel * panel_bytes;
      float* first_out = p.out + panel * panel_floats;
      for (int stream = 0; stream < streams; ++stream) {
        clear(first_out + stream * panel_floats, p.rows * kLanes);
      }
      for (int group = 0; group < p.layout.groups; ++group) {
        const std::byte* block = first_block + group * p.layout.block_bytes();
        float* out = first_out;
        for (int stream = 0; stream < streams; ++stream) {
          prefetch_lines<kLines, kStreamAhead>(block);
          if (one_row) {
            add_block_to_row(block, p, group, out);
          } else {
            add_block(block, p, group, rows, out);
          }
          block += panel_bytes;
          out += panel_floats;
        }
      }
    }
  }
};

/// body(bits, group size), both as constants.
template <typename Body>
void for_codes(const CodesLayout& layout, const Body& body) {
  const auto for_groups = [&](auto bits) {
    switch (layout.group_size) {
      case 32:
        return body(bits, Constant<32>());
      case 64:
        return body(bits, Constant<64>());
      default:
        return body(bits, Constant<128>());
    }
  };
  switch (layout.bits) {
    case 2:
      return for_groups(Constant<2>());
    case 3:
      return for_groups(Constant<3>());
    case 4:
      return for_groups(Constant<4>());
    case 5:
      return for_groups(Constant<5>());
    case 6:
      return for_groups(Constant<6>());
    default:
      return for_groups(Constant<8>());
  }
}

inline void codes_product(const CodesProduct& p) {
  for_codes(p.layout, [&](auto bits, auto group_size) {
    CodesKernel<bits.value, group_size.value>::product(p);
  });
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
