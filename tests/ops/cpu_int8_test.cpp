// Products of codes with rows of 8-bit integers on every instruction set here: against float64,
// and against each other bit for bit.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
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

std::vector<float> normal(Random& random, size_t count) {
  std::normal_distribution<float> distribution;
  std::vector<float> numbers(count);
  std::generate(numbers.begin(), numbers.end(), [&] { return distribution(random); });
  return numbers;
}

/// Panels with random codes, scales around 0.01, and offsets that centre the codes.
std::vector<std::byte> random_panels(Random& random, const CodesLayout& layout, int panels) {
  std::vector<std::byte> bytes;
  const auto append = [&](float number) {
    uint32_t bits = 0;
    std::memcpy(&bits, &number, sizeof(bits));
    const auto* first = reinterpret_cast<const std::byte*>(&bits);
    bytes.insert(bytes.end(), first + (layout.scales == Float::f32 ? 0 : 2), first + 4);
  };
  for (int block = 0; block < panels * layout.groups; ++block) {
    for (size_t i = 0; i < layout.code_bytes(); ++i) {
      bytes.push_back(static_cast<std::byte>(random()));
    }
    const std::vector<float> around = normal(random, kLanes);
    for (const float number : around) {
      append(0.01F * (1 + 0.1F * number));
    }
    for (const float number : around) {
      append(-0.01F * std::ldexp(1.0F + 0.1F * number, layout.bits - 1));
    }
  }
  return bytes;
}

/// Rows of integers with the memory that they lie in, which is full of what should not count.
struct Rows {
  Int8Rows rows;
  std::vector<int8_t> numbers;
  std::vector<float> scales;
  std::vector<float> sums;

  Rows(Isa isa, const std::vector<float>& x, int row_count, const CodesLayout& layout) {
    rows.tiles = (row_count + kRoundedTileRows - 1) / kRoundedTileRows;
    rows.group_size = layout.group_size;
    rows.groups = layout.groups;
    numbers.assign(rows.number_count(), 99);
    scales.assign(rows.scale_count(), NAN);
    sums.assign(rows.scale_count(), NAN);
    rows.numbers = numbers.data();
    rows.scales = scales.data();
    rows.sums = sums.data();
    const size_t width = static_cast<size_t>(layout.groups) * layout.group_size;
    for (int row = 0; row < row_count; ++row) {
      kernels_for(isa).int8_row(x.data() + row * width, rows, row);
    }
  }

  int number(int row, int input) const {
    const int8_t* tile = rows.tile(input / rows.part_inputs(), row / kRoundedTileRows);
    return tile[row % kRoundedTileRows * rows.part_inputs() + input % rows.part_inputs()];
  }
  float scale(int row, int input) const { return rows.scales_of(input / rows.group_size)[row]; }
};

/// Products of `tiles` tiles from `first` on -> [panels][tiles * 16][16], and a NaN behind them.
std::vector<float> multiply(
    Isa isa,
    const std::vector<std::byte>& w,
    const CodesLayout& layout,
    const Rows& x,
    int first,
    int tiles
) {
  CodesInt8Product product;
  product.panel = w.data();
  product.panels = static_cast<int>(w.size() / layout.panel_bytes());
  product.layout = layout;
  product.x = &x.rows;
  product.first_tile = first;
  product.tiles = tiles;
  const size_t numbers = static_cast<size_t>(product.panels) * tiles * kRoundedTileRows * kLanes;
  std::vector<float> out(numbers + 1, NAN);
  product.out = out.data();
  kernels_for(isa).codes_int8_product(product);
  EXPECT_TRUE(std::isnan(out.back())) << "a number too many";
  return out;
}

std::vector<float> weights_of(
    const std::vector<std::byte>& w, const CodesLayout& layout, int output
) {
  std::vector<float> row(static_cast<size_t>(layout.groups) * layout.group_size);
  const std::byte* panel = w.data() + output / kLanes * layout.panel_bytes();
  unpack_codes_row(panel, layout, output % kLanes, row.data());
  return row;
}

struct Errors {
  double of_arithmetic = 0;  // against the sum of the rounded x, a share of |offset sums| + |terms|
  double of_terms = 0;       // against the sum of x itself, a share of the sum of |x w|
  double of_largest = 0;     // the same, a share of the row's largest output
};

class CpuInt8 : public testing::TestWithParam<Isa> {
 protected:
  /// Random rows times random panels, every third output. One number in 64 is `outlier` times as
  /// large as it would be.
  Errors errors(const CodesLayout& layout, int rows, int panels, float outlier = 1) {
    const std::vector<std::byte> w = random_panels(random_, layout, panels);
    const int width = layout.groups * layout.group_size;
    std::vector<float> numbers = normal(random_, static_cast<size_t>(rows) * width);
    for (size_t i = random_() % 64; i < numbers.size(); i += 64) {
      numbers[i] *= outlier;
    }
    const Rows x(GetParam(), numbers, rows, layout);
    const std::vector<float> out = multiply(GetParam(), w, layout, x, 0, x.rows.tiles);
    std::vector<double> largest(static_cast<size_t>(rows));
    std::vector<double> error(static_cast<size_t>(rows));
    Errors found;
    for (int output = 0; output < panels * kLanes; output += 3) {
      const std::vector<float> weights = weights_of(w, layout, output);
      for (int row = 0; row < rows; ++row) {
        const auto place = static_cast<size_t>(row);
        double exact = 0;
        double rounded = 0;
        double terms = 0;
        double codes = 0;  // terms before offsets are taken off
        for (int i = 0; i < width; ++i) {
          const double weight = weights[static_cast<size_t>(i)];
          const double term = weight * numbers[place * width + i];
          exact += term;
          terms += std::abs(term);
          const double seen = double{x.scale(row, i)} * x.number(row, i);
          rounded += weight * seen;
          codes += std::abs(seen) * 0.015 * std::ldexp(1.0, layout.bits);
        }
        const size_t panel_row =
            static_cast<size_t>(output) / kLanes * static_cast<size_t>(x.rows.padded_rows()) +
            static_cast<size_t>(row);
        const double result = out[panel_row * kLanes + static_cast<size_t>(output) % kLanes];
        found.of_arithmetic = std::max(found.of_arithmetic, std::abs(result - rounded) / codes);
        found.of_terms = std::max(found.of_terms, std::abs(result - exact) / terms);
        largest[place] = std::max(largest[place], std::abs(exact));
        error[place] = std::max(error[place], std::abs(result - exact));
      }
    }
    for (size_t row = 0; row < error.size(); ++row) {
      found.of_largest = std::max(found.of_largest, error[row] / largest[row]);
    }
    return found;
  }

  Random random_{17};
};

TEST_P(CpuInt8, rows_are_the_nearest_integers_with_ties_to_even) {
  for (const int group_size : {32, 64, 128}) {
    const CodesLayout layout{4, group_size, Float::bf16, 3};
    const int width = 3 * group_size;
    std::vector<float> numbers = normal(random_, static_cast<size_t>(17) * width);
    numbers[0] = -127;  // the first row's first group counts in ones
    for (int i = 1; i < group_size; ++i) {
      numbers[static_cast<size_t>(i)] = 0.5F * static_cast<float>(i - 20);
    }
    const Rows x(GetParam(), numbers, 17, layout);
    EXPECT_EQ(x.scale(0, 0), 1.0F);
    EXPECT_EQ(x.number(0, 0), -127);
    for (int i = 1; i < group_size; ++i) {
      EXPECT_EQ(x.number(0, i), std::nearbyint(0.5 * (i - 20))) << i;
    }
    for (int row = 0; row < 17; ++row) {
      for (int group = 0; group < 3; ++group) {
        int32_t total = 0;
        int largest = 0;
        for (int i = group * group_size; i < (group + 1) * group_size; ++i) {
          const double scale{x.scale(row, i)};
          const double number{
              numbers
                  [static_cast<size_t>(row) * static_cast<size_t>(width) + static_cast<size_t>(i)]
          };
          ASSERT_LE(std::abs(scale * x.number(row, i) - number), 0.50001 * scale);
          total += x.number(row, i);
          largest = std::max(largest, std::abs(x.number(row, i)));
        }
        EXPECT_EQ(largest, 127);
        const float sum = x.scale(row, group * group_size) * static_cast<float>(total);
        EXPECT_EQ(x.rows.sums_of(group)[row], sum);
      }
    }
  }
}

/// Sums over a group are exact, so that float32 rounds but a few numbers a group.
TEST_P(CpuInt8, products_are_those_of_the_rounded_rows) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group_size : {32, 64, 128}) {
      for (const int rows : {1, 16, 17, 33}) {
        for (int panels = 1; panels <= 3; ++panels) {
          SCOPED_TRACE(fmt::format("{} bits by {}, {} rows", bits, group_size, rows));
          const Float scales = panels == 2 ? Float::f32 : Float::bf16;
          const Errors found = errors({bits, group_size, scales, 2 * panels + 1}, rows, panels);
          ASSERT_LT(found.of_arithmetic, 2e-6);
        }
      }
    }
  }
}

/// A number is off by up to half a step of a 127th of its group's largest, which is two to four
/// times a usual one, or far more where one stands out; the errors of a sum go forth and back.
TEST_P(CpuInt8, errors_at_real_widths) {
  for (const int width : {2048, 11008}) {
    for (const int bits : {4, 8}) {
      for (const float outlier : {1.0F, 20.0F}) {
        const std::string name = fmt::format("{}_{}_{}", width, bits, outlier);
        const Errors found = errors({bits, 64, Float::bf16, width / 64}, 40, 4, outlier);
        RecordProperty("of_largest_" + name, fmt::format("{}", found.of_largest));
        RecordProperty("of_terms_" + name, fmt::format("{}", found.of_terms));
        EXPECT_LT(found.of_largest, outlier == 1 ? 0.02 : 0.05) << name;
        EXPECT_LT(found.of_terms, outlier == 1 ? 0.001 : 0.007) << name;
      }
    }
  }
}

TEST_P(CpuInt8, a_tile_has_the_same_bits_alone_and_among_others) {
  const CodesLayout layout{4, 64, Float::bf16, 19};
  const std::vector<std::byte> w = random_panels(random_, layout, 2);
  const std::vector<float> numbers = normal(random_, static_cast<size_t>(160) * 19 * 64);
  const Rows x(GetParam(), numbers, 160, layout);
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

TEST_P(CpuInt8, all_instruction_sets_give_the_same_bits) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group_size : {32, 64, 128}) {
      SCOPED_TRACE(fmt::format("{} bits by {}", bits, group_size));
      const CodesLayout layout{bits, group_size, Float::bf16, 9};
      const std::vector<std::byte> w = random_panels(random_, layout, 2);
      const std::vector<float> numbers = normal(random_, static_cast<size_t>(16) * 9 * group_size);
      const Rows here(GetParam(), numbers, 16, layout);
      const Rows there(Isa::scalar, numbers, 16, layout);
      EXPECT_EQ(here.numbers, there.numbers);
      EXPECT_EQ(here.scales, there.scales);
      EXPECT_EQ(here.sums, there.sums);
      std::vector<float> out = multiply(GetParam(), w, layout, here, 0, 1);
      std::vector<float> expected = multiply(Isa::scalar, w, layout, there, 0, 1);
      out.pop_back();
      expected.pop_back();
      EXPECT_EQ(out, expected);
    }
  }
}

TEST_P(CpuInt8, what_is_no_number_makes_its_row_none_and_no_other) {
  const CodesLayout layout{4, 64, Float::bf16, 3};
  const std::vector<std::byte> w = random_panels(random_, layout, 2);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> numbers = normal(random_, static_cast<size_t>(16) * 192);
    numbers[5 * 192 + 77] = bad;
    const std::vector<float> out =
        multiply(GetParam(), w, layout, Rows(GetParam(), numbers, 16, layout), 0, 1);
    for (size_t i = 0; i + 1 < out.size(); ++i) {
      EXPECT_EQ(std::isnan(out[i]), i / kLanes % 16 == 5) << bad << " at " << i;
    }
  }
}

TEST_P(CpuInt8, zero_tiny_and_huge_rows_stay_what_they_are) {
  const CodesLayout layout{4, 64, Float::bf16, 1};
  const std::vector<std::byte> w = random_panels(random_, layout, 1);
  for (const float size : {0.0F, 1e-38F, 1e-20F, 1e30F}) {
    const std::vector<float> numbers(64, size);
    const std::vector<float> out =
        multiply(GetParam(), w, layout, Rows(GetParam(), numbers, 1, layout), 0, 1);
    double sum = 0;
    for (const float weight : weights_of(w, layout, 3)) {
      sum += double{weight} * double{size};
    }
    EXPECT_NEAR(out[3], sum, 1e-3 * double{size} + 1e-30) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Isas,
    CpuInt8,
    testing::ValuesIn(available_isas()),
    [](const testing::TestParamInfo<Isa>& tested) { return std::string(isa_name(tested.param)); }
);

}  // namespace
}  // namespace whimbrel::ops::cpu
