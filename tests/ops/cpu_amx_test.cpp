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
      for (int panels = 1; panels <= 4; ++panels) {
        const CodesLayout layout{bits, group_size, Float::bf16, 1 + panels};
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

uint16_t bf16_of(float number) {
  uint16_t bits = 0;
  kernels_for(Isa::scalar).to_bf16(&number, 1, &bits);
  return bits;
}

float float_of(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float number = 0;
  std::memcpy(&number, &wide, sizeof(number));
  return number;
}

/// Small whole numbers, whose products and sums float32 holds exactly.
std::vector<uint16_t> whole_numbers(Random& random, size_t count) {
  std::vector<uint16_t> numbers(count);
  for (uint16_t& number : numbers) {
    number = bf16_of(static_cast<float>(random() % 33) - 16);
  }
  return numbers;
}

TEST_F(Amx, products_of_bf16_are_exact_where_their_sums_are) {
  constexpr int kPadding = 7;  // of a row of x
  for (const int width : {32, 96, 512, 544, 1280}) {
    for (int panels = 1; panels <= 4; ++panels) {
      const std::vector<uint16_t> w =
          whole_numbers(random_, static_cast<size_t>(panels) * width * kLanes);
      for (const int rows : {1, 2, 15, 16, 17, 31, 32, 33, 48, 63, 100}) {
        const size_t stride = static_cast<size_t>(width) + kPadding;
        const std::vector<uint16_t> x = whole_numbers(random_, rows * stride);
        std::vector<float> out(static_cast<size_t>(panels) * rows * kLanes + 1, NAN);
        Bf16Product product;
        product.panel = reinterpret_cast<const std::byte*>(w.data());
        product.panels = panels;
        product.width = width;
        product.x = x.data();
        product.x_stride = stride;
        product.rows = rows;
        product.out = out.data();
        kernels_for(Isa::amx).bf16_product(product);
        for (int panel = 0; panel < panels; ++panel) {
          for (int row = 0; row < rows; ++row) {
            for (int lane = 0; lane < kLanes; ++lane) {
              float sum = 0;
              for (int k = 0; k < width; ++k) {
                const size_t place =
                    ((static_cast<size_t>(panel) * width + k / 2 * 2) * kLanes) + 2 * lane + k % 2;
                sum += float_of(w[place]) * float_of(x[row * stride + k]);
              }
              ASSERT_EQ(out[(static_cast<size_t>(panel) * rows + row) * kLanes + lane], sum)
                  << width << " inputs, panel " << panel << ", row " << row << " of " << rows;
            }
          }
        }
        ASSERT_TRUE(std::isnan(out.back())) << "a number too many";
      }
    }
  }
}

TEST_F(Amx, a_row_of_bf16_has_the_same_bits_alone_and_among_others) {
  constexpr int kWidth = 1056;
  constexpr int kRows = 50;
  std::vector<uint16_t> w(2 * kWidth * kLanes);
  std::vector<uint16_t> x(kRows * kWidth);
  std::normal_distribution<float> normal;
  std::generate(w.begin(), w.end(), [&] { return bf16_of(normal(random_)); });
  std::generate(x.begin(), x.end(), [&] { return bf16_of(normal(random_)); });
  const auto multiply_rows = [&](int first, int rows) {
    std::vector<float> out(static_cast<size_t>(2 * rows) * kLanes);
    Bf16Product product;
    product.panel = reinterpret_cast<const std::byte*>(w.data());
    product.panels = 2;
    product.width = kWidth;
    product.x = x.data() + static_cast<size_t>(first) * kWidth;
    product.x_stride = kWidth;
    product.rows = rows;
    product.out = out.data();
    kernels_for(Isa::amx).bf16_product(product);
    return out;
  };
  const std::vector<float> all = multiply_rows(0, kRows);
  for (int row = 0; row < kRows; ++row) {
    const std::vector<float> alone = multiply_rows(row, 1);
    for (int i = 0; i < 2 * kLanes; ++i) {
      const int place = (i / kLanes * kRows + row) * kLanes + i % kLanes;
      ASSERT_EQ(all[static_cast<size_t>(place)], alone[static_cast<size_t>(i)]) << row;
    }
  }
}

}  // namespace
}  // namespace whimbrel::ops::cpu
