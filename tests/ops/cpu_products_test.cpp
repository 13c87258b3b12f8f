// Products of packed panels against sums in float64, on every instruction set that is here.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <ostream>
#include <random>
#include <tuple>
#include <vector>

#include "ops/cpu/kernels.h"
#include "ops/cpu/pack.h"

namespace whimbrel::ops::cpu {
namespace {

using Random = std::mt19937;

std::vector<float> normal(Random& random, size_t count) {
  std::normal_distribution<float> distribution;
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    number = distribution(random);
  }
  return numbers;
}

/// A random matrix of codes in a file's form, and packed.
struct Codes {
  CodesLayout layout;
  int outputs;
  std::vector<uint8_t> codes;
  std::vector<std::byte> scales;
  std::vector<std::byte> offsets;
  std::vector<std::byte> panels;

  int inputs() const { return layout.groups * layout.group_size; }

  std::vector<float> row(int output) const {
    std::vector<float> y(static_cast<size_t>(inputs()));
    const std::byte* panel = panels.data() + output / kLanes * layout.panel_bytes();
    unpack_codes_row(panel, layout, output % kLanes, y.data());
    return y;
  }
};

std::vector<std::byte> scale_bytes(Random& random, Float type, size_t count) {
  std::vector<std::byte> bytes;
  for (const float number : normal(random, count)) {
    uint32_t bits = 0;
    std::memcpy(&bits, &number, sizeof(bits));
    if (type == Float::bf16) {
      bits >>= 16;
    } else if (type == Float::f16) {
      bits = 0x2000 | (bits >> 9 & 0x9fff);  // some half of a moderate size
    }
    const auto* first = reinterpret_cast<const std::byte*>(&bits);
    bytes.insert(bytes.end(), first, first + (type == Float::f32 ? 4 : 2));
  }
  return bytes;
}

Codes random_codes(Random& random, const CodesLayout& layout, int outputs) {
  Codes made{layout, outputs, {}, {}, {}, {}};
  const auto rows = static_cast<size_t>(outputs);
  made.codes.resize(rows * made.inputs() * layout.bits / 8);
  for (uint8_t& byte : made.codes) {
    byte = static_cast<uint8_t>(random());
  }
  made.scales = scale_bytes(random, layout.scales, rows * layout.groups);
  made.offsets = scale_bytes(random, layout.scales, rows * layout.groups);
  made.panels.resize(panels_of(outputs) * layout.panel_bytes());
  const StoredCodes stored{made.codes.data(), made.scales.data(), made.offsets.data(), outputs};
  for (int panel = 0; panel < panels_of(outputs); ++panel) {
    pack_codes(stored, layout, panel, made.panels.data() + panel * layout.panel_bytes());
  }
  return made;
}

/// Rows of activations as kernels split them, with the memory that they lie in.
struct Split {
  SplitRows rows;
  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<float> sums;
};

Split split(
    const Kernels& kernels, const std::vector<float>& x, int rows, const CodesLayout& layout
) {
  Split made;
  const int tile_rows = rows >= 5 ? kTileRows : rows >= 3 ? 4 : rows;
  made.rows.rows = rows;
  made.rows.tile_rows = tile_rows;
  made.rows.tiles = (rows + tile_rows - 1) / tile_rows;
  made.rows.group_size = layout.group_size;
  made.rows.groups = layout.groups;
  made.codes.resize(made.rows.code_bytes());
  made.scales.resize(static_cast<size_t>(layout.groups) * made.rows.padded_rows());
  made.sums.resize(made.scales.size());
  made.rows.codes = made.codes.data();
  made.rows.scales = made.scales.data();
  made.rows.sums = made.sums.data();
  for (int row = 0; row < rows; ++row) {
    kernels.split_row(x.data() + row * layout.groups * layout.group_size, made.rows, row);
  }
  return made;
}

std::vector<float> multiply(const Kernels& kernels, const Codes& w, const Split& x) {
  const int panels = panels_of(w.outputs);
  std::vector<float> out(static_cast<size_t>(panels) * x.rows.padded_rows() * kLanes, NAN);
  CodesProduct product;
  product.panel = w.panels.data();
  product.panels = panels;
  product.layout = w.layout;
  product.x = &x.rows;
  product.tiles = x.rows.tiles;
  product.rows = x.rows.rows;
  product.out = out.data();
  kernels.codes_product(product);
  return out;
}

class OnEachIsa : public testing::TestWithParam<Isa> {
 protected:
  const Kernels& kernels() const { return kernels_for(GetParam()); }
  Random random_{7};
};

constexpr int kBits[] = {2, 3, 4, 5, 6, 8};
constexpr int kGroups[] = {32, 64, 128};
constexpr Float kScales[] = {Float::bf16, Float::f16, Float::f32};
constexpr int kRows[] = {1, 2, 3, 4, 5, 8, 9, 17};

/// The largest error of a product, as a share of the sum of the sizes of its terms.
double relative_error(
    const Codes& w, const std::vector<float>& x, int rows, const std::vector<float>& out, int padded
) {
  double worst = 0;
  const auto width = static_cast<size_t>(w.inputs());
  for (int output = 0; output < w.outputs; ++output) {
    const std::vector<float> weights = w.row(output);
    for (int row = 0; row < rows; ++row) {
      double sum = 0;
      double size = 0;
      for (size_t k = 0; k < width; ++k) {
        const double term = double{weights[k]} * double{x[row * width + k]};
        sum += term;
        size += std::abs(term);
      }
      const size_t place =
          (static_cast<size_t>(output / kLanes) * padded + row) * kLanes + output % kLanes;
      worst = std::max(worst, std::abs(sum - double{out[place]}) / size);
    }
  }
  return worst;
}

TEST_P(OnEachIsa, codes_of_all_widths_and_groups) {
  for (const int bits : kBits) {
    for (const int group_size : kGroups) {
      for (const Float scales : kScales) {
        const Codes w = random_codes(random_, {bits, group_size, scales, 3}, 37);
        for (const int rows : kRows) {
          const std::vector<float> x = normal(random_, static_cast<size_t>(rows) * w.inputs());
          const Split split_x = split(kernels(), x, rows, w.layout);
          const std::vector<float> out = multiply(kernels(), w, split_x);
          ASSERT_LT(relative_error(w, x, rows, out, split_x.rows.padded_rows()), 3e-5)
              << bits << " bits, groups of " << group_size << ", scales "
              << static_cast<int>(scales) << ", " << rows << " rows";
        }
      }
    }
  }
}

TEST_P(OnEachIsa, a_row_of_codes_has_the_same_bits_alone_and_among_others) {
  const Codes w = random_codes(random_, {4, 64, Float::bf16, 5}, 48);
  const auto width = static_cast<size_t>(w.inputs());
  const std::vector<float> x = normal(random_, 11 * width);
  const Split together = split(kernels(), x, 11, w.layout);
  const std::vector<float> all = multiply(kernels(), w, together);
  for (int row = 0; row < 11; ++row) {
    const std::vector<float> one(x.begin() + row * width, x.begin() + (row + 1) * width);
    const std::vector<float> alone = multiply(kernels(), w, split(kernels(), one, 1, w.layout));
    for (int output = 0; output < w.outputs; ++output) {
      const int panel = output / kLanes;
      const int lane = output % kLanes;
      ASSERT_EQ(
          all[(panel * together.rows.padded_rows() + row) * kLanes + lane],
          alone[panel * kLanes + lane]
      );
    }
  }
}

TEST_P(OnEachIsa, a_part_of_the_tiles_is_that_part_of_the_whole) {
  const Codes w = random_codes(random_, {4, 64, Float::bf16, 2}, 16);
  const std::vector<float> x = normal(random_, static_cast<size_t>(29) * w.inputs());
  const Split split_x = split(kernels(), x, 29, w.layout);
  const std::vector<float> all = multiply(kernels(), w, split_x);
  std::vector<float> part(static_cast<size_t>(2 * kTileRows * kLanes));
  CodesProduct product;
  product.panel = w.panels.data();
  product.panels = 1;
  product.layout = w.layout;
  product.x = &split_x.rows;
  product.first_tile = 2;
  product.tiles = 2;
  product.rows = 13;
  product.out = part.data();
  kernels().codes_product(product);
  for (size_t i = 0; i < 13 * kLanes; ++i) {
    EXPECT_EQ(part[i], all[2 * kTileRows * kLanes + i]) << i;
  }
}

TEST_P(OnEachIsa, zero_and_huge_rows_stay_what_they_are) {
  const Codes w = random_codes(random_, {4, 64, Float::bf16, 1}, 16);
  for (const float size : {0.0F, 1e-38F, 1e20F}) {
    const std::vector<float> x(64, size);
    const std::vector<float> out = multiply(kernels(), w, split(kernels(), x, 1, w.layout));
    EXPECT_LT(relative_error(w, x, 1, out, 1), size == 1e20F ? 3e-5 : INFINITY) << size;
    EXPECT_TRUE(std::isfinite(out[0])) << size;
  }
}

TEST_P(OnEachIsa, a_number_that_is_none_is_not_lost) {
  const Codes w = random_codes(random_, {4, 64, Float::bf16, 2}, 16);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> x(128, 1.0F);
    x[77] = bad;
    const std::vector<float> out = multiply(kernels(), w, split(kernels(), x, 1, w.layout));
    EXPECT_FALSE(std::isfinite(out[3])) << bad;
  }
}

TEST_P(OnEachIsa, plain_numbers_of_all_types) {
  for (const Float type : kScales) {
    for (const int inputs : {2, 30, 64, 131}) {
      constexpr int kOutputs = 37;
      const int width = padded_inputs(type, inputs);
      const FloatsLayout layout{type, width};
      const std::vector<std::byte> stored =
          scale_bytes(random_, type, static_cast<size_t>(kOutputs) * inputs);
      std::vector<std::byte> panels(panels_of(kOutputs) * layout.panel_bytes());
      for (int panel = 0; panel < panels_of(kOutputs); ++panel) {
        pack_floats(
            {stored.data(), kOutputs, inputs},
            layout,
            panel,
            panels.data() + panel * layout.panel_bytes()
        );
      }
      for (const int rows : kRows) {
        std::vector<float> x = normal(random_, static_cast<size_t>(rows) * width);
        for (int row = 0; row < rows; ++row) {
          std::fill(x.begin() + row * width + inputs, x.begin() + (row + 1) * width, 0.0F);
        }
        std::vector<float> out(static_cast<size_t>(panels_of(kOutputs)) * rows * kLanes, NAN);
        FloatsProduct product;
        product.panel = panels.data();
        product.panels = panels_of(kOutputs);
        product.layout = layout;
        product.x = x.data();
        product.x_stride = static_cast<size_t>(width);
        product.rows = rows;
        product.out = out.data();
        kernels().floats_product(product);
        for (int output = 0; output < kOutputs; ++output) {
          for (int row = 0; row < rows; ++row) {
            double sum = 0;
            double size = 1e-30;
            for (int k = 0; k < inputs; ++k) {
              const size_t place = static_cast<size_t>(output) * inputs + k;
              const size_t bytes = type == Float::f32 ? 4 : 2;
              const double term = double{to_float(stored.data() + place * bytes, type)} *
                                  double{x[static_cast<size_t>(row) * width + k]};
              sum += term;
              size += std::abs(term);
            }
            const int place = (output / kLanes * rows + row) * kLanes + output % kLanes;
            ASSERT_NEAR(out[place], sum, 1e-6 * size) << inputs << " inputs, row " << row;
          }
        }
      }
    }
  }
}

TEST_P(OnEachIsa, norms_are_those_of_their_definition) {
  for (const int width : {1, 8, 16, 31, 1280}) {
    const std::vector<float> x = normal(random_, width);
    const std::vector<float> weight = normal(random_, width);
    const std::vector<float> bias = normal(random_, width);
    double squares = 0;
    double total = 0;
    for (const float v : x) {
      squares += double{v} * double{v};
      total += double{v};
    }
    const double mean = total / width;
    const double variance = squares / width - mean * mean;
    std::vector<float> rms(x.size());
    std::vector<float> layer(x.size());
    kernels().rms_norm(x.data(), weight.data(), 1e-6F, width, rms.data());
    kernels().layer_norm(x.data(), weight.data(), bias.data(), 1e-5F, width, layer.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double root = std::sqrt(squares / width + 1e-6);
      ASSERT_NEAR(rms[i], x[i] / root * weight[i], 2e-6 * (1 + std::abs(rms[i])));
      const double normed = (x[i] - mean) / std::sqrt(variance + 1e-5);
      ASSERT_NEAR(layer[i], normed * weight[i] + bias[i], 1e-5 * (1 + std::abs(layer[i])));
    }
  }
}

/// What finish_tile makes of x.
float activated(const Kernels& kernels, float x, Activation activation) {
  std::vector<float> tile(kLanes, x);
  std::vector<float> out(kLanes);
  FinishTile finish;
  finish.tile = tile.data();
  finish.rows = 1;
  finish.columns = 5;
  finish.activation = activation;
  finish.out = out.data();
  finish.out_stride = kLanes;
  kernels.finish_tile(finish);
  EXPECT_EQ(out[5], 0.0F) << "a column too many";
  return out[4];
}

TEST_P(OnEachIsa, activations_are_those_of_their_definition) {
  for (double x = -30; x <= 30; x += 0.37) {
    const auto given = static_cast<float>(x);
    const double v = double{given};
    const double erf = v / 2 * (1 + std::erf(v / std::sqrt(2.0)));
    const double tanh = v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    const double quick = v / (1 + std::exp(-1.702 * v));
    const double slack = 1e-6 * (1 + std::abs(v));
    EXPECT_NEAR(activated(kernels(), given, Activation::none), v, 0);
    EXPECT_NEAR(activated(kernels(), given, Activation::gelu_erf), erf, slack) << x;
    EXPECT_NEAR(activated(kernels(), given, Activation::gelu_tanh), tanh, slack) << x;
    EXPECT_NEAR(activated(kernels(), given, Activation::gelu_quick), quick, slack) << x;
  }
}

TEST_P(OnEachIsa, swiglu_adds_biases_first) {
  std::vector<float> gate(2 * kLanes);
  std::vector<float> up(2 * kLanes);
  std::vector<float> gate_bias(kLanes, 0.5F);
  std::vector<float> up_bias(kLanes, -1.0F);
  for (size_t i = 0; i < gate.size(); ++i) {
    gate[i] = static_cast<float>(i) - 16;
    up[i] = static_cast<float>(i) / 3;
  }
  std::vector<float> out(40, NAN);
  FinishSwiglu finish;
  finish.gate = gate.data();
  finish.up = up.data();
  finish.rows = 2;
  finish.columns = 13;
  finish.gate_bias = gate_bias.data();
  finish.up_bias = up_bias.data();
  finish.out = out.data();
  finish.out_stride = 20;
  kernels().finish_swiglu(finish);
  for (size_t row = 0; row < 2; ++row) {
    for (size_t column = 0; column < 13; ++column) {
      const double g = double{gate[row * kLanes + column]} + 0.5;
      const double u = double{up[row * kLanes + column]} - 1;
      EXPECT_NEAR(out[row * 20 + column], g / (1 + std::exp(-g)) * u, 1e-5);
    }
    EXPECT_TRUE(std::isnan(out[row * 20 + 13]));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Products,
    OnEachIsa,
    testing::ValuesIn(available_isas()),
    [](const testing::TestParamInfo<Isa>& tested) { return std::string(isa_name(tested.param)); }
);

}  // namespace
}  // namespace whimbrel::ops::cpu
