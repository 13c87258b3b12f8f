// Products of affine codes with many rows that were rounded to bfloat16 or 8-bit integers, on
// tiles: what both have in common. The codes of up to two panels and a step of inputs stay in tiles
// while rows pass, 16 at a time. Their sums are stored, scaled and added to `out` by vectors while
// the tiles multiply the next rows.
//
// A Kernel has: Product, kPanels, kParts (tiles of x and of a panel's codes in a step),
// kStepsAGroup, kTileNumbers and kRowBytes (of a tile of x), kPartCodes (of a panel's tile),
// Weights (a chunk of the panels), Sums (of 16 rows and a step), Place (what scales them, and where
// they belong), unpack_chunk, dot, place and add_sums.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

/// Inputs of a panel that are unpacked at a time; what all rows pass over.
constexpr int kChunkInputs = 512;

/// Tiles of rows that pass over a step while it is in tiles: their sums stay in the first cache.
constexpr int kBlockTiles = 8;

constexpr int kTileSums = kRoundedTileRows * kLanes;

/// Tiles of the hardware: sums [panels], x [parts], weights [panels][parts].
constexpr int kFirstXTile = 2;
constexpr int kFirstWeightTile = 4;

inline TileShapes shapes_for_rows(int x_row_bytes, int weight_rows) {
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) {
    const bool is_x = tile >= kFirstXTile && tile < kFirstWeightTile;
    shapes.rows[tile] =
        static_cast<uint8_t>(tile < kFirstWeightTile ? kRoundedTileRows : weight_rows);
    shapes.row_bytes[tile] = static_cast<uint16_t>(is_x ? x_row_bytes : 64);
  }
  return shapes;
}

template <typename Kernel>
WHIMBREL_INLINE void load_step(const typename Kernel::Weights& w, int step) {
  unroll<Kernel::kPanels * Kernel::kParts>([&](auto tile) __attribute__((always_inline)) {
    constexpr int kPart = decltype(tile)::value % Kernel::kParts;
    const auto* codes = w.codes[tile.value / Kernel::kParts];
    tile_load<kFirstWeightTile + tile.value>(
        codes + (step * Kernel::kParts + kPart) * Kernel::kPartCodes, 64
    );
  });
}

/// Products of a tile of rows with the step in tiles. Between two that wait for each other stands
/// one that does not.
template <typename Kernel, typename Number>
WHIMBREL_INLINE void multiply_step(const Number* x, size_t parts_apart) {
  unroll<Kernel::kParts>([&](auto part) __attribute__((always_inline)) {
    tile_load<kFirstXTile + part.value>(x + part.value * parts_apart, Kernel::kRowBytes);
  });
  unroll<Kernel::kPanels>([](auto p) __attribute__((always_inline)) { tile_zero<p.value>(); });
  unroll<Kernel::kParts>([](auto part) __attribute__((always_inline)) {
    constexpr int kPart = decltype(part)::value;
    unroll<Kernel::kPanels>([](auto p) __attribute__((always_inline)) {
      constexpr int kWeights = kFirstWeightTile + decltype(p)::value * Kernel::kParts + kPart;
      Kernel::template dot<p.value, kFirstXTile + kPart, kWeights>();
    });
  });
}

template <typename Kernel>
WHIMBREL_INLINE void store_sums(typename Kernel::Sums& sums) {
  unroll<Kernel::kPanels>([&](auto p) __attribute__((always_inline)) {
    tile_store<p.value>(sums.numbers[p.value], 64);
  });
}

/// Adds groups [first, end), at most a chunk, of the panels from `panel` on.
template <typename Kernel>
void add_chunk(const typename Kernel::Product& p, int panel, int first, int end) {
  const size_t panel_floats = static_cast<size_t>(p.tiles) * kTileSums;
  typename Kernel::Weights w;
  for (int i = 0; i < Kernel::kPanels; ++i) {
    const std::byte* from = p.panel + (panel + i) * p.layout.panel_bytes();
    Kernel::unpack_chunk(from, p.layout, first, end, i, w);
  }
  const int steps = (end - first) * Kernel::kStepsAGroup;
  const size_t parts_apart = static_cast<size_t>(p.x->tiles) * Kernel::kTileNumbers;
  typename Kernel::Sums sums[2];
  typename Kernel::Place places[2];
  int set = 0;
  bool any = false;
  for (int block = 0; block < p.tiles; block += kBlockTiles) {
    const int last = smaller(p.tiles, block + kBlockTiles);
    for (int step = 0; step < steps; ++step) {
      load_step<Kernel>(w, step);
      const int part = (first * Kernel::kStepsAGroup + step) * Kernel::kParts;
      const auto* x = p.x->tile(part, p.first_tile + block);
      float* out = p.out + panel * panel_floats + static_cast<size_t>(block) * kTileSums;
      for (int tile = block; tile < last; ++tile) {
        multiply_step<Kernel>(x, parts_apart);
        if (any) {
          Kernel::add_sums(sums[1 - set], places[1 - set], panel_floats);
        }
        store_sums<Kernel>(sums[set]);
        places[set] = Kernel::place(p, w, first, step, tile, out);
        set = 1 - set;
        any = true;
        x += Kernel::kTileNumbers;
        out += kTileSums;
      }
    }
  }
  Kernel::add_sums(sums[1 - set], places[1 - set], panel_floats);
}

/// Adds all groups of all panels, a chunk of all panels before the next chunk.
template <template <int, int, int> typename Kernel, int bits, int group_size, typename Product>
void add_panels(const Product& p) {
  constexpr int kChunkGroups = kChunkInputs / group_size;
  const int pairs_end = p.panels / 2 * 2;
  for (int first = 0; first < p.layout.groups; first += kChunkGroups) {
    const int end = smaller(p.layout.groups, first + kChunkGroups);
    for (int panel = 0; panel < pairs_end; panel += 2) {
      add_chunk<Kernel<bits, group_size, 2>>(p, panel, first, end);
    }
    if (pairs_end < p.panels) {
      add_chunk<Kernel<bits, group_size, 1>>(p, pairs_end, first, end);
    }
  }
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
