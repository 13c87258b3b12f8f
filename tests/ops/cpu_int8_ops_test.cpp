// Operations whose rows are rounded to 8 bits where they meet codes, against the reference, and
// where they must not be, against those that round nothing so.

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <cmath>
#include <memory>
#include <vector>

#include "base/error.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/device.h"
#include "ops/graph.h"
#include "ops/ops.h"

namespace whimbrel::ops {
namespace {

/// How far a result may lie from the reference, as a share of the largest value. A number is off by
/// up to 1/254 of its group's largest, which is two to four times a usual one: 0.6 % of a usual
/// output, and some of thousands are four times as far off. A norm's weights spread the numbers of
/// a group further.
constexpr float kInt8 = 2e-2F;

float distance(const mx::array& found, const mx::array& expected) {
  const mx::array difference = mx::max(mx::abs(mx::subtract(found, expected)));
  return mx::divide(difference, mx::max(mx::abs(expected))).item<float>();
}

constexpr int kWidth = 384;
constexpr int kOutputs = 90;

class CpuInt8Ops : public testing::Test {
 protected:
  void SetUp() override {
    mx::random::seed(5);
    if (backend_name() != "cpu") {
      GTEST_SKIP() << "on a GPU";
    }
  }

  /// One matrix in the forms of all three.
  struct Packed {
    PackedMatrixPtr int8;
    PackedMatrixPtr exact;
    PackedMatrixPtr reference;
  };

  /// bfloat16 where there are 0 bits.
  Packed packed(const mx::Shape& shape, int bits, int group_size = 64) const {
    const float scale = 1.0F / std::sqrt(static_cast<float>(shape.back()));
    const mx::array weight = mx::astype(
        mx::multiply(mx::random::normal(shape), scalar(scale, mx::float32)), mx::bfloat16
    );
    Matrix matrix{weight};
    if (bits != 0) {
      const std::vector<mx::array> parts = mx::quantize(weight, group_size, bits);
      matrix = {parts[0], parts[1], parts[2], Quantization{bits, group_size}};
    }
    return {int8_->pack(matrix), exact_->pack(matrix), reference_->pack(matrix)};
  }

  const cpu::Isa isa_ = cpu::available_isas().back();
  std::unique_ptr<const Ops> int8_ = cpu::make_cpu_ops(isa_, 2, {.prefill_int8 = true});
  std::unique_ptr<const Ops> exact_ = cpu::make_cpu_ops(isa_, 2);
  std::unique_ptr<const Ops> reference_ = make_reference_ops(mx::float32, Arithmetic::float32);
};

TEST_F(CpuInt8Ops, rows_of_prompts_are_rounded) {
  for (const auto& [bits, group_size] : {std::pair{4, 64}, {8, 32}, {6, 128}, {3, 64}}) {
    const Packed w = packed({kOutputs, kWidth}, bits, group_size);
    const Packed up = packed({kOutputs, kWidth}, bits, group_size);
    const RmsNorm norm{int8_->pack_vector(mx::random::uniform(0.5F, 1.5F, {kWidth})), 1e-6F};
    for (const int rows : {3, 33, 300}) {
      SCOPED_TRACE(std::to_string(bits) + " bits, rows " + std::to_string(rows));
      const Activations x = prefill_rows(mx::random::normal({rows, kWidth}));
      const mx::array residual = mx::random::normal({rows, kOutputs});
      const float error = distance(
          int8_->linear_residual(x, *w.int8, residual),
          reference_->linear_residual(x, *w.reference, residual)
      );
      EXPECT_LT(error, kInt8);
      // Rows in bfloat16, which some instruction sets take without the option, are off by less.
      EXPECT_GT(error, kInt8 / 8) << "not rounded to 8 bits";
      EXPECT_FALSE(
          mx::array_equal(int8_->linear(x, *w.int8), exact_->linear(x, *w.exact)).item<bool>()
      );
      EXPECT_LT(
          distance(
              int8_->norm_linears(x, norm, {&w.int8, 1})[0],
              reference_->norm_linears(x, norm, {&w.reference, 1})[0]
          ),
          kInt8
      );
      EXPECT_LT(
          distance(
              int8_->norm_swiglu(x, norm, *w.int8, *up.int8),
              reference_->norm_swiglu(x, norm, *w.reference, *up.reference)
          ),
          kInt8
      );
    }
  }
}

TEST_F(CpuInt8Ops, rows_of_answers_are_not) {
  const Packed w = packed({kOutputs, kWidth}, 4);
  for (const int rows : {1, 5, 33, 300}) {
    const Activations x = decode_rows(mx::random::normal({rows, kWidth}));
    EXPECT_TRUE(
        mx::array_equal(int8_->linear(x, *w.int8), exact_->linear(x, *w.exact)).item<bool>()
    ) << rows;
  }
}

TEST_F(CpuInt8Ops, plain_weights_see_the_same_rows) {
  const Packed w = packed({kOutputs, kWidth}, 0);
  const Activations x = prefill_rows(mx::random::normal({40, kWidth}));
  EXPECT_TRUE(mx::array_equal(int8_->linear(x, *w.int8), exact_->linear(x, *w.exact)).item<bool>());
}

/// Matrices of codes and plain ones behind one norm.
TEST_F(CpuInt8Ops, codes_beside_plain_weights) {
  const std::vector<Packed> all = {
      packed({96, kWidth}, 4), packed({32, kWidth}, 0), packed({7, kWidth}, 8, 32)
  };
  const RmsNorm norm{int8_->pack_vector(mx::random::uniform(0.5F, 1.5F, {kWidth})), 1e-6F};
  const Activations x = prefill_rows(mx::random::normal({49, kWidth}));
  const std::vector<PackedMatrixPtr> ours = {all[0].int8, all[1].int8, all[2].int8};
  const std::vector<PackedMatrixPtr> theirs = {
      all[0].reference, all[1].reference, all[2].reference
  };
  const std::vector<mx::array> found = int8_->norm_linears(x, norm, ours);
  const std::vector<mx::array> expected = reference_->norm_linears(x, norm, theirs);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_LT(distance(found[i], expected[i]), kInt8) << i;
  }
}

/// Another choice of experts would be no rounding error.
TEST_F(CpuInt8Ops, routers_and_experts_see_exact_rows) {
  constexpr int kExperts = 6;
  const Packed router = packed({kExperts, kWidth}, 8);
  const Packed gate = packed({kExperts, 128, kWidth}, 4);
  const Packed up = packed({kExperts, 128, kWidth}, 4);
  const Packed down = packed({kExperts, kWidth, 128}, 4);
  const RmsNorm norm{int8_->pack_vector(mx::random::uniform(0.5F, 1.5F, {kWidth})), 1e-6F};
  const mx::array x = mx::random::normal({560, kWidth});
  const mx::array found =
      int8_->experts_residual(x, norm, {router.int8, gate.int8, up.int8, down.int8, 2, true});
  const mx::array expected =
      exact_->experts_residual(x, norm, {router.exact, gate.exact, up.exact, down.exact, 2, true});
  EXPECT_TRUE(mx::array_equal(found, expected).item<bool>());
}

TEST_F(CpuInt8Ops, rows_are_the_same_among_more) {
  constexpr int kFirst = 493;  // they lie elsewhere in tiles, and on both sides of a block's border
  constexpr int kCount = 37;
  const Packed w = packed({kOutputs, kWidth}, 4);
  const mx::array x = mx::random::normal({560, kWidth});
  const auto rows = [](const mx::array& array, int first, int end) {
    return mx::slice(array, mx::Shape{first, 0}, mx::Shape{end, array.shape(1)});
  };
  const mx::array among = int8_->linear(prefill_rows(x), *w.int8);
  const mx::array alone = int8_->linear(prefill_rows(rows(x, kFirst, kFirst + kCount)), *w.int8);
  EXPECT_TRUE(mx::array_equal(alone, rows(among, kFirst, kFirst + kCount)).item<bool>());
}

TEST_F(CpuInt8Ops, say_what_they_round_to) {
  EXPECT_EQ(int8_->rounding(), mx::int8);
  EXPECT_NE(exact_->rounding(), mx::int8);
}

TEST_F(CpuInt8Ops, no_others_round_so) {
  EXPECT_EQ(make_ops("cpu", mx::bfloat16, {.prefill_int8 = true})->rounding(), mx::int8);
  try {
    make_ops("reference", mx::bfloat16, {.prefill_int8 = true});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::usage);
    EXPECT_NE(std::string(error.what()).find("--prefill-int8"), std::string::npos);
  }
}

}  // namespace
}  // namespace whimbrel::ops
