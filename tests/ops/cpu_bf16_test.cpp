// Products with bfloat16 on every instruction set here that has one of its own.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ops/cpu/kernels.h"

namespace whimbrel::ops::cpu {
namespace {

using Random = std::mt19937;

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

/// Weights as panels of 16 outputs, and rows of inputs.
struct Operands {
  int width = 0;
  int panels = 0;
  int rows = 0;
  size_t x_stride = 0;
  std::vector<uint16_t> w = {};
  std::vector<uint16_t> x = {};

  float weight(int output, int input) const {
    const size_t pairs = static_cast<size_t>(output / kLanes) * width + input / 2 * 2;
    return float_of(w[pairs * kLanes + 2 * (output % kLanes) + input % 2]);
  }
  float at(int row, int input) const { return float_of(x[row * x_stride + input]); }
};

/// Products of rows [first, first + rows) -> [panels][rows][16], and a NaN behind them.
std::vector<float> multiply_rows(Isa isa, const Operands& operands, int first, int rows) {
  std::vector<float> out(static_cast<size_t>(operands.panels) * rows * kLanes + 1, NAN);
  Bf16Product product;
  product.panel = reinterpret_cast<const std::byte*>(operands.w.data());
  product.panels = operands.panels;
  product.width = operands.width;
  product.x = operands.x.data() + first * operands.x_stride;
  product.x_stride = operands.x_stride;
  product.rows = rows;
  product.out = out.data();
  kernels_for(isa).bf16_product(product);
  return out;
}

void expect_exact(const Operands& operands, const std::vector<float>& out) {
  for (int output = 0; output < operands.panels * kLanes; ++output) {
    for (int row = 0; row < operands.rows; ++row) {
      float sum = 0;
      for (int input = 0; input < operands.width; ++input) {
        sum += operands.weight(output, input) * operands.at(row, input);
      }
      const int place = (output / kLanes * operands.rows + row) * kLanes + output % kLanes;
      ASSERT_EQ(out[static_cast<size_t>(place)], sum) << "output " << output << ", row " << row;
    }
  }
  ASSERT_TRUE(std::isnan(out.back())) << "a number too many";
}

class CpuBf16 : public testing::TestWithParam<Isa> {
 protected:
  Random random_{11};
};

/// Those that multiply bfloat16 at all.
std::vector<Isa> isas_with_bf16() {
  std::vector<Isa> isas = available_isas();
  std::erase_if(isas, [](Isa isa) { return kernels_for(isa).bf16_product == nullptr; });
  return isas;
}

TEST_P(CpuBf16, products_are_exact_where_their_sums_are) {
  constexpr int kPadding = 7;  // of a row of x
  for (const int width : {32, 96, 512, 544, 1280}) {
    for (const int rows : {1, 2, 15, 16, 17, 31, 32, 33, 48, 63, 100}) {
      for (int panels = 1; panels <= 4; ++panels) {
        SCOPED_TRACE(fmt::format("{} inputs, {} rows, {} panels", width, rows, panels));
        Operands operands = {.width = width, .panels = panels, .rows = rows};
        operands.x_stride = static_cast<size_t>(width) + kPadding;
        operands.w = whole_numbers(random_, static_cast<size_t>(panels) * width * kLanes);
        operands.x = whole_numbers(random_, rows * operands.x_stride);
        expect_exact(operands, multiply_rows(GetParam(), operands, 0, rows));
      }
    }
  }
}

TEST_P(CpuBf16, a_row_has_the_same_bits_alone_and_among_others) {
  Operands operands = {.width = 1056, .panels = 2, .rows = 50, .x_stride = 1056};
  operands.w.resize(static_cast<size_t>(operands.panels) * operands.width * kLanes);
  operands.x.resize(static_cast<size_t>(operands.rows) * operands.width);
  std::normal_distribution<float> normal;
  std::generate(operands.w.begin(), operands.w.end(), [&] { return bf16_of(normal(random_)); });
  std::generate(operands.x.begin(), operands.x.end(), [&] { return bf16_of(normal(random_)); });
  const std::vector<float> all = multiply_rows(GetParam(), operands, 0, operands.rows);
  for (int row = 0; row < operands.rows; ++row) {
    const std::vector<float> alone = multiply_rows(GetParam(), operands, row, 1);
    for (int i = 0; i < operands.panels * kLanes; ++i) {
      const int place = (i / kLanes * operands.rows + row) * kLanes + i % kLanes;
      ASSERT_EQ(all[static_cast<size_t>(place)], alone[static_cast<size_t>(i)]) << row;
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuBf16);  // on a CPU that has none
INSTANTIATE_TEST_SUITE_P(
    Isas,
    CpuBf16,
    testing::ValuesIn(isas_with_bf16()),
    [](const testing::TestParamInfo<Isa>& tested) { return std::string(isa_name(tested.param)); }
);

}  // namespace
}  // namespace whimbrel::ops::cpu
