// Products on tiles give the bits of the vectors' products.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "ops/cpu/kernels.h"

namespace whimbrel::ops::cpu {
namespace {

using Random = std::mt19937;

/// A matrix in its packed form, of random codes and of bfloat16 scales and offsets.
std::vector<std::byte> random_panels(Random& random, const CodesLayout& layout, int panels) {
  std::vector<std::byte> bytes(panels * layout.panel_bytes());
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); });
  std::normal_distribution<float> normal;
  for (size_t block = 0; block < bytes.size(); block += layout.block_bytes()) {
    for (size_t at = layout.code_bytes(); at < layout.block_bytes(); at += 2) {
      const float number = normal(random);
      const auto* high = reinterpret_cast<const std::byte*>(&number) + 2;
      std::copy(high, high + 2, bytes.data() + block + at);
    }
  }
  return bytes;
}

/// Rows of activations, split, with the memory that they lie in.
struct Split {
  SplitRows rows;
  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<float> sums;

  Split(Random& random, int row_count, int tile_rows, const CodesLayout& layout) {
    rows.rows = row_count;
    rows.tile_rows = tile_rows;
    rows.tiles = (row_count + tile_rows - 1) / tile_rows;
    rows.group_size = layout.group_size;
    rows.groups = layout.groups;
    codes.resize(rows.code_bytes());
    scales.resize(static_cast<size_t>(layout.groups) * rows.padded_rows());
    sums.resize(scales.size());
    rows.codes = codes.data();
    rows.scales = scales.data();
    rows.sums = sums.data();
    std::normal_distribution<float> normal;
    std::vector<float> x(static_cast<size_t>(layout.groups) * layout.group_size);
    for (int row = 0; row < row_count; ++row) {
      std::generate(x.begin(), x.end(), [&] { return normal(random); });
      kernels_for(Isa::scalar).split_row(x.data(), rows, row);
    }
  }
};

/// [panels][rows][16], without the rows that only fill up a tile.
std::vector<float> multiply(
    const Kernels& kernels,
    const std::vector<std::byte>& w,
    const CodesLayout& layout,
    const Split& x
) {
  const int panels = static_cast<int>(w.size() / layout.panel_bytes());
  const size_t padded = static_cast<size_t>(x.rows.padded_rows()) * kLanes;
  std::vector<float> out(panels * padded, NAN);
  CodesProduct product;
  product.panel = w.data();
  product.panels = panels;
  product.layout = layout;
  product.x = &x.rows;
  product.tiles = x.rows.tiles;
  product.rows = x.rows.rows;
  product.out = out.data();
  kernels.codes_product(product);
  std::vector<float> kept;
  for (int panel = 0; panel < panels; ++panel) {
    const auto first = out.begin() + static_cast<std::ptrdiff_t>(panel * padded);
    kept.insert(kept.end(), first, first + static_cast<std::ptrdiff_t>(x.rows.rows) * kLanes);
  }
  return kept;
}

class Amx : public testing::Test {
 protected:
  void SetUp() override {
    if (std::ranges::find(available_isas(), Isa::amx) == available_isas().end()) {
      GTEST_SKIP() << "this CPU or its kernel offers no AMX";
    }
  }
  Random random_{11};
};

TEST_F(Amx, codes_give_the_bits_of_the_vectors) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group_size : {32, 64, 128}) {
      // Eight panels are read side by side, two by two: fewer, as many, more, and one left over.
      for (const int panels : {1, 2, 3, 5, 8, 11}) {
        const CodesLayout layout{bits, group_size, Float::bf16, 1 + panels % 3};
        const std::vector<std::byte> w = random_panels(random_, layout, panels);
        for (const int rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 100}) {
          for (const int tile_rows : {1, 2, 4, 8}) {
            const Split x(random_, rows, tile_rows, layout);
            ASSERT_EQ(
                multiply(kernels_for(Isa::amx), w, layout, x),
                multiply(kernels_for(Isa::avx512), w, layout, x)
            ) << bits
              << " bits, groups of " << group_size << ", " << panels << " panels, " << rows
              << " rows in tiles of " << tile_rows;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace whimbrel::ops::cpu
