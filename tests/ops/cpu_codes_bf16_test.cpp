// Products of codes with rows in bfloat16 on every instruction set here that has them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ops/cpu/kernels.h"
#include "ops/cpu/pack.h"

namespace whimbrel::ops::cpu {
namespace {

using Random = std::mt19937;

/// Appends a number as a panel stores it.
void append(std::vector<std::byte>& bytes, float number, Float type) {
  std::byte as_float[sizeof(float)];
  std::memcpy(as_float, &number, sizeof(number));
  if (type == Float::f32) {
    bytes.insert(bytes.end(), as_float, as_float + sizeof(float));
    return;
  }
  if (type == Float::bf16) {
    bytes.insert(bytes.end(), as_float + 2, as_float + sizeof(float));
    return;
  }
  const auto half = static_cast<_Float16>(number);
  std::byte as_half[sizeof(half)];
  std::memcpy(as_half, &half, sizeof(half));
  bytes.insert(bytes.end(), as_half, as_half + sizeof(half));
}

/// Random codes; scales are powers of two and offsets whole numbers up to 300, so that float32
/// holds all sums exactly where the rows are small whole numbers.
std::vector<std::byte> exact_panels(Random& random, const CodesLayout& layout, int panels) {
  std::vector<std::byte> bytes;
  for (int block = 0; block < panels * layout.groups; ++block) {
    for (size_t i = 0; i < layout.code_bytes(); ++i) {
      bytes.push_back(static_cast<std::byte>(random()));
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      append(bytes, std::ldexp(1.0F, static_cast<int>(random() % 3) - 1), layout.scales);
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      append(bytes, static_cast<float>(random() % 601) - 300, layout.scales);
    }
  }
  return bytes;
}

/// Rows of activations in bfloat16 with the memory that they lie in. All of it is NaN before, for
/// what is not set should not count.
struct Rounded {
  Bf16Rows rows;
  std::vector<uint16_t> numbers;
  std::vector<uint16_t> sums;

  Rounded(Isa isa, const std::vector<float>& x, int row_count, const CodesLayout& layout) {
    constexpr uint16_t kNan = 0x7fff;
    rows.tiles = (row_count + kRoundedTileRows - 1) / kRoundedTileRows;
    rows.group_size = layout.group_size;
    rows.groups = layout.groups;
    numbers.assign(rows.number_count(), kNan);
    sums.assign(rows.sum_count(), kNan);
    rows.numbers = numbers.data();
    rows.sums = sums.data();
    for (int row = 0; row < row_count; ++row) {
      kernels_for(isa).round_row(x.data() + static_cast<size_t>(row) * rows.width(), rows, row);
    }
  }
};

/// Products of `tiles` tiles from `first` on -> [panels][tiles * 16][16], and a NaN behind them.
std::vector<float> multiply(
    Isa isa,
    const std::vector<std::byte>& w,
    const CodesLayout& layout,
    const Rounded& x,
    int first,
    int tiles
) {
  CodesBf16Product product;
  product.panel = w.data();
  product.panels = static_cast<int>(w.size() / layout.panel_bytes());
  product.layout = layout;
  product.x = &x.rows;
  product.first_tile = first;
  product.tiles = tiles;
  const size_t numbers = static_cast<size_t>(product.panels) * tiles * kRoundedTileRows * kLanes;
  std::vector<float> out(numbers + 1, NAN);
  product.out = out.data();
  kernels_for(isa).codes_bf16_product(product);
  EXPECT_TRUE(std::isnan(out.back())) << "a number too many";
  return out;
}

/// Output `output` of a matrix times a row.
float exact_sum(
    const std::vector<std::byte>& w, const CodesLayout& layout, int output, const float* x
) {
  const auto width = static_cast<size_t>(layout.groups) * layout.group_size;
  std::vector<float> row(width);
  const std::byte* panel = w.data() + static_cast<size_t>(output / kLanes) * layout.panel_bytes();
  unpack_codes_row(panel, layout, output % kLanes, row.data());
  double sum = 0;
  for (size_t i = 0; i < width; ++i) {
    sum += static_cast<double>(row[i]) * x[i];
  }
  return static_cast<float>(sum);
}

std::vector<float> whole_numbers(Random& random, size_t count) {
  std::vector<float> numbers(count);
  std::generate(numbers.begin(), numbers.end(), [&] {
    return static_cast<float>(random() % 9) - 4;
  });
  return numbers;
}

class CpuCodesBf16 : public testing::TestWithParam<Isa> {
 protected:
  void expect_exact(const CodesLayout& layout, int rows, int panels) {
    const std::vector<std::byte> w = exact_panels(random_, layout, panels);
    const int width = layout.groups * layout.group_size;
    const std::vector<float> numbers = whole_numbers(random_, static_cast<size_t>(rows) * width);
    const Rounded x(GetParam(), numbers, rows, layout);
    const std::vector<float> out = multiply(GetParam(), w, layout, x, 0, x.rows.tiles);
    for (int output = 0; output < panels * kLanes; output += 3) {
      for (int row = 0; row < rows; ++row) {
        const float sum = exact_sum(w, layout, output, numbers.data() + row * width);
        const int place = (output / kLanes * x.rows.padded_rows() + row) * kLanes + output % kLanes;
        ASSERT_EQ(out[static_cast<size_t>(place)], sum) << "output " << output << ", row " << row;
      }
    }
  }

  Random random_{11};
};

std::vector<Isa> isas_with_codes_in_bf16() {
  std::vector<Isa> isas = available_isas();
  std::erase_if(isas, [](Isa isa) { return kernels_for(isa).codes_bf16_product == nullptr; });
  return isas;
}

TEST_P(CpuCodesBf16, products_are_exact_where_their_sums_are) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group_size : {32, 64, 128}) {
      for (const int rows : {1, 16, 17, 33, 100, 150}) {
        for (int panels = 1; panels <= 3; ++panels) {
          SCOPED_TRACE(fmt::format("{} bits, {} rows, {} panels", bits, rows, panels));
          expect_exact({bits, group_size, Float::bf16, 2 * panels + 1}, rows, panels);
        }
      }
    }
  }
}

TEST_P(CpuCodesBf16, widths_that_are_no_whole_number_of_chunks) {
  for (const int groups : {1, 7, 8, 9, 16, 17, 31, 32, 33, 41, 65}) {
    for (const int group_size : {32, 64, 128}) {
      SCOPED_TRACE(fmt::format("{} groups of {}", groups, group_size));
      expect_exact({4, group_size, Float::bf16, groups}, 40, 2);
    }
  }
}

TEST_P(CpuCodesBf16, scales_and_offsets_of_all_types) {
  for (const Float type : {Float::bf16, Float::f16, Float::f32}) {
    SCOPED_TRACE(static_cast<int>(type));
    expect_exact({4, 64, type, 5}, 20, 2);
  }
}

TEST_P(CpuCodesBf16, a_tile_has_the_same_bits_alone_and_among_others) {
  const CodesLayout layout{4, 64, Float::bf16, 19};
  const std::vector<std::byte> w = exact_panels(random_, layout, 2);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<size_t>(160) * layout.groups * layout.group_size);
  std::generate(numbers.begin(), numbers.end(), [&] { return normal(random_); });
  const Rounded x(GetParam(), numbers, 160, layout);
  constexpr int kTile = kRoundedTileRows * kLanes;
  const std::vector<float> all = multiply(GetParam(), w, layout, x, 0, 10);
  for (int tile = 0; tile < 10; ++tile) {
    const std::vector<float> alone = multiply(GetParam(), w, layout, x, tile, 1);
    for (int i = 0; i < 2 * kTile; ++i) {
      const int place = (i / kTile * 10 + tile) * kTile + i % kTile;
      ASSERT_EQ(all[static_cast<size_t>(place)], alone[static_cast<size_t>(i)]) << tile;
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuCodesBf16);  // on a CPU that has none
INSTANTIATE_TEST_SUITE_P(
    Isas,
    CpuCodesBf16,
    testing::ValuesIn(isas_with_codes_in_bf16()),
    [](const testing::TestParamInfo<Isa>& tested) { return std::string(isa_name(tested.param)); }
);

}  // namespace
}  // namespace whimbrel::ops::cpu
