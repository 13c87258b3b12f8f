#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "ops/cpu/isa.h"
#include "tests/ops/simd/functions.h"

namespace whimbrel::ops::cpu {
namespace {

using Register = std::array<std::byte, 64>;

/// Bits of floats at which functions may go wrong: both zeros, the ends of each range, ties of
/// rounding to bfloat16 and to integers, NaNs.
constexpr std::array<uint32_t, 36> kFloatBits = {
    0x00000000, 0x00000001, 0x000fffff, 0x007fffff, 0x00800000, 0x00800001, 0x33800000, 0x3effffff,
    0x3f000000, 0x3f000001, 0x3f7fffff, 0x3f800000, 0x3f808000, 0x3f808001, 0x3f807fff, 0x3f818000,
    0x3f817fff, 0x3fc00000, 0x40200000, 0x40600000, 0x42fe0000, 0x42ff0000, 0x4affffff, 0x4b000000,
    0x4b000001, 0x4b7fffff, 0x4effffff, 0x4f000000, 0x5f000000, 0x7f7f7fff, 0x7f7f8000, 0x7f7fffff,
    0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff
};
constexpr std::array<uint32_t, 8> kIntegers = {
    0, 1, 0xffffffff, 127, 0xffffff80, 0x7fffffff, 0x80000000, 16777217
};
constexpr std::array<uint32_t, 6> kBytes = {0x80808080, 0x7f7f7f7f, 0, 0xffffffff, 1, 0xff017f80};

template <size_t n>
uint32_t one_of(const std::array<uint32_t, n>& values, std::mt19937& random) {
  return values[random() % n];
}

/// A lane of an operand, half of the time a special one.
uint32_t random_lane(Numbers kind, std::mt19937& random) {
  const bool special = random() % 2 == 0;
  const auto any = static_cast<uint32_t>(random());
  const uint32_t sign = any & 0x80000000;
  switch (kind) {
    case Numbers::f32:
      return special ? one_of(kFloatBits, random) ^ sign : any;
    case Numbers::ordered_f32: {
      const uint32_t bits = random_lane(Numbers::f32, random);
      return (bits & 0x7fffffff) > 0x7f800000 ? 0 : bits;
    }
    case Numbers::near_i32: {
      const uint32_t bits = random_lane(Numbers::f32, random);
      return (bits & 0x7fffffff) >= 0x4f000000 ? any % 0x4f000000 : bits;
    }
    case Numbers::i32:
      return special ? one_of(kIntegers, random) : any;
    case Numbers::words:
      return any;
    case Numbers::bytes:
      return special ? one_of(kBytes, random) : any;
    case Numbers::small_bytes:
      return (special ? one_of(kBytes, random) : any) & 0x7f7f7f7f;
  }
  return any;
}

Register random_register(Numbers kind, std::mt19937& random) {
  std::array<uint32_t, 16> lanes;
  std::ranges::generate(lanes, [&] { return random_lane(kind, random); });
  return std::bit_cast<Register>(lanes);
}

struct Operands {
  Register a = {};
  Register b = {};
  Register c = {};
};

Operands random_operands(const SimdFunction& function, std::mt19937& random) {
  return {
      random_register(function.a, random),
      random_register(function.b, random),
      random_register(function.c, random)
  };
}

/// What the function writes over bytes that were 0x5a, from operands at addresses that are no
/// multiple of a register's size.
Register result_of(const SimdFunction& function, const Operands& operands) {
  std::vector<Register> memory(5);
  const auto place = [&](size_t i) { return memory[i].data() + 4; };
  std::memcpy(place(0), &operands.a, sizeof(Register));
  std::memcpy(place(1), &operands.b, sizeof(Register));
  std::memcpy(place(2), &operands.c, sizeof(Register));
  std::memset(place(3), 0x5a, sizeof(Register));
  function.apply(place(0), place(1), place(2), place(3));
  Register result;
  std::memcpy(&result, place(3), sizeof(Register));
  return result;
}

template <typename Lane>
std::string first_difference(const Register& got, const Register& expected) {
  using Lanes = std::array<Lane, 64 / sizeof(Lane)>;
  const auto got_lanes = std::bit_cast<Lanes>(got);
  const auto expected_lanes = std::bit_cast<Lanes>(expected);
  for (size_t i = 0; i < got_lanes.size(); ++i) {
    bool same = std::memcmp(&got_lanes[i], &expected_lanes[i], sizeof(Lane)) == 0;
    if constexpr (std::is_floating_point_v<Lane>) {
      same = same || (std::isnan(got_lanes[i]) && std::isnan(expected_lanes[i]));
    }
    if (!same) {
      return "lane " + std::to_string(i) + ": got " + std::to_string(got_lanes[i]) + ", expected " +
             std::to_string(expected_lanes[i]);
    }
  }
  return "";
}

std::string difference(Numbers kind, const Register& got, const Register& expected) {
  switch (kind) {
    case Numbers::f32:
      return first_difference<float>(got, expected);
    case Numbers::i32:
      return first_difference<int32_t>(got, expected);
    case Numbers::words:
      return first_difference<uint16_t>(got, expected);
    default:
      return first_difference<uint8_t>(got, expected);
  }
}

const SimdFunction& scalar_function(std::string_view name) {
  const SimdFunctions scalar = simd_functions_for(Isa::scalar);
  const auto* end = scalar.first + scalar.count;
  const auto* found =
      std::find_if(scalar.first, end, [&](const SimdFunction& f) { return f.name == name; });
  if (found == end) {
    throw std::invalid_argument("no function " + std::string(name));
  }
  return *found;
}

template <typename Result, typename Lane>
std::array<Result, 64 / sizeof(Result)> scalar_result(
    std::string_view name,
    const std::array<Lane, 64 / sizeof(Lane)>& a,
    const std::array<Lane, 64 / sizeof(Lane)>& b = {},
    const std::array<Lane, 64 / sizeof(Lane)>& c = {}
) {
  const Operands operands = {
      std::bit_cast<Register>(a), std::bit_cast<Register>(b), std::bit_cast<Register>(c)
  };
  return std::bit_cast<std::array<Result, 64 / sizeof(Result)>>(
      result_of(scalar_function(name), operands)
  );
}

// Scalar vectors against what the standard says.

TEST(ScalarVectors, fma_rounds_once) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    const auto draw = [&] {
      return std::bit_cast<std::array<float, 16>>(random_register(Numbers::f32, random));
    };
    const std::array<float, 16> a = draw();
    const std::array<float, 16> b = draw();
    std::array<float, 16> c = draw();
    for (size_t i = 0; i < 8; ++i) {
      c[i] = -a[i] * b[i];  // what is left is the product's own rounding
    }
    const auto got = scalar_result<float, float>("fma", a, b, c);
    for (size_t i = 0; i < 16; ++i) {
      const float expected = std::fma(a[i], b[i], c[i]);
      if (!std::isnan(expected) || !std::isnan(got[i])) {
        ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected))
            << a[i] << " * " << b[i] << " + " << c[i];
      }
    }
  }
}

TEST(ScalarVectors, fma_of_a_tie_looks_at_what_double_drops) {
  // 1 + 2^-24 is a tie of floats; the product's last bit, which double has no place for, decides.
  const float a = 1.0F + 0x1p-12F;
  std::array<float, 16> products = {};
  products.fill(0x1p-60F);
  std::array<float, 16> ones = {};
  ones.fill(1.0F);
  std::array<float, 16> ties = {};
  ties.fill(0x1p-24F);
  EXPECT_EQ((scalar_result<float, float>("fma", ones, ties, ones)[0]), 1.0F);
  std::array<float, 16> above = {};
  above.fill(0x1p-24F + 0x1p-47F);
  EXPECT_EQ((scalar_result<float, float>("fma", ones, above, ones)[0]), 1.0F + 0x1p-23F);
  std::array<float, 16> factors = {};
  factors.fill(a);
  for (const float tail : {0x1p-80F, -0x1p-80F}) {
    ties.fill(tail);
    EXPECT_EQ(
        (scalar_result<float, float>("fma", factors, factors, ties)[0]), std::fma(a, a, tail)
    );
  }
}

TEST(ScalarVectors, to_i32_rounds_to_the_nearest_and_ties_to_even) {
  const std::array<float, 16> numbers = {
      0.5F,
      1.5F,
      2.5F,
      -0.5F,
      -1.5F,
      -2.5F,
      0.0F,
      -0.0F,
      0.49999997F,
      8388607.5F,
      8388608.0F,
      -8388607.5F,
      127.5F,
      -128.5F,
      2147483520.0F,
      -2147483648.0F
  };
  const auto got = scalar_result<int32_t, float>("to_i32", numbers);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(got[i], static_cast<int32_t>(std::nearbyint(numbers[i]))) << numbers[i];
  }
}

TEST(ScalarVectors, store_bf16_rounds_to_the_nearest_and_ties_to_even) {
  const std::array<uint32_t, 16> bits = {
      0x3f808000,
      0x3f818000,
      0x3f808001,
      0x3f807fff,
      0xbf808000,
      0xbf818000,
      0x7f7f7fff,
      0x7f7f8000,
      0xff7fffff,
      0x7f800000,
      0xff800000,
      0x00000001,
      0x00008000,
      0x00008001,
      0x00018000,
      0x80000000
  };
  const std::array<uint16_t, 16> expected = {
      0x3f80,
      0x3f82,
      0x3f81,
      0x3f80,
      0xbf80,
      0xbf82,
      0x7f7f,
      0x7f80,
      0xff80,
      0x7f80,
      0xff80,
      0x0000,
      0x0000,
      0x0001,
      0x0002,
      0x8000
  };
  const auto got = scalar_result<uint16_t, uint32_t>("store_bf16", bits);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), got.begin()));
}

TEST(ScalarVectors, a_nan_stays_one_in_bf16) {
  const std::array<uint32_t, 16> bits = {
      0x7f800001, 0x7fffffff, 0xffffffff, 0xff800001, 0x7fc00000
  };
  const auto got = scalar_result<uint16_t, uint32_t>("store_bf16", bits);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(got[i] & 0x7f80, 0x7f80);
    EXPECT_NE(got[i] & 0x7f, 0);
  }
}

float value_of_f16(int half) {
  const int exponent = (half >> 10) & 31;
  const auto fraction = static_cast<float>(half & 1023);
  const float size = exponent == 0   ? std::ldexp(fraction, -24)
                     : exponent < 31 ? std::ldexp(1024 + fraction, exponent - 25)
                     : fraction == 0 ? std::numeric_limits<float>::infinity()
                                     : std::numeric_limits<float>::quiet_NaN();
  return (half & 0x8000) != 0 ? -size : size;
}

TEST(ScalarVectors, load_f16_knows_every_number) {
  for (int first = 0; first < 65536; first += 16) {
    std::array<uint16_t, 32> halves = {};
    for (int i = 0; i < 16; ++i) {
      halves[i] = static_cast<uint16_t>(first + i);
    }
    const auto got = scalar_result<float, uint16_t>("load_f16", halves);
    for (int i = 0; i < 16; ++i) {
      const float expected = value_of_f16(first + i);
      EXPECT_EQ(std::isnan(got[i]), std::isnan(expected)) << first + i;
      if (!std::isnan(expected)) {
        EXPECT_EQ(got[i], expected) << first + i;
        EXPECT_EQ(std::signbit(got[i]), std::signbit(expected)) << first + i;
      }
    }
  }
}

TEST(ScalarVectors, dot4_wide_does_not_saturate) {
  Operands operands;
  operands.b.fill(std::byte{255});
  operands.c.fill(std::byte{0x80});
  const Register lowest = result_of(scalar_function("dot4_wide"), operands);
  EXPECT_EQ((std::bit_cast<std::array<int32_t, 16>>(lowest)[7]), 4 * 255 * -128);
  operands.c.fill(std::byte{127});
  const Register highest = result_of(scalar_function("dot4_wide"), operands);
  EXPECT_EQ((std::bit_cast<std::array<int32_t, 16>>(highest)[7]), 4 * 255 * 127);
}

TEST(ScalarVectors, a_sum_halves_the_vector) {
  std::array<float, 16> lanes = {};
  lanes[0] = 0x1p24F;
  lanes[1] = 1;
  lanes[9] = 1;  // meets lane 1 first: pairs of ones are not lost
  EXPECT_EQ((scalar_result<float, float>("sum", lanes)[0]), 0x1p24F + 2);
}

// The other instruction sets against scalar vectors.

class Vectors : public testing::TestWithParam<Isa> {};

TEST_P(Vectors, give_the_bits_of_scalar_ones) {
  const auto& offered = available_isas();
  if (std::ranges::find(offered, GetParam()) == offered.end()) {
    GTEST_SKIP() << "this CPU does not offer " << isa_name(GetParam());
  }
  const SimdFunctions scalar = simd_functions_for(Isa::scalar);
  const SimdFunctions own = simd_functions_for(GetParam());
  ASSERT_EQ(own.count, scalar.count);
  std::mt19937 random(2);
  for (int i = 0; i < own.count; ++i) {
    ASSERT_STREQ(own.first[i].name, scalar.first[i].name);
    for (int round = 0; round < 2000; ++round) {
      const Operands operands = random_operands(own.first[i], random);
      const Register got = result_of(own.first[i], operands);
      const Register expected = result_of(scalar.first[i], operands);
      ASSERT_EQ(difference(own.first[i].result, got, expected), "")
          << own.first[i].name << ", round " << round;
    }
  }
}

std::string name_of(const testing::TestParamInfo<Isa>& info) {
  return std::string(isa_name(info.param));
}

#if defined(__x86_64__)
INSTANTIATE_TEST_SUITE_P(
    Simd, Vectors, testing::Values(Isa::avx2, Isa::avxvnni, Isa::avx512, Isa::avx512bf16), name_of
);
#elif defined(__aarch64__)
INSTANTIATE_TEST_SUITE_P(Simd, Vectors, testing::Values(Isa::neon), name_of);
#endif

}  // namespace
}  // namespace whimbrel::ops::cpu
