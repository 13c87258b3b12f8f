// Operations that are made of others have the bits of their parts; peaks are those of the
// reference.

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "ops/cpu/cpu_ops.h"
#include "ops/device.h"
#include "ops/graph.h"
#include "ops/ops.h"

namespace whimbrel::ops {
namespace {

constexpr int kWidth = 192;
constexpr int kHidden = 320;
constexpr int kHeadDim = 64;
constexpr HeadShape kShape = {4, 2, kHeadDim};
constexpr int kCapacity = 64;
constexpr int kRows[] = {1, 2, 3, 8, 16, 17};

mx::array random_array(const mx::Shape& shape) {
  mx::array array = mx::random::normal(shape);
  array.eval();
  return array;
}

bool same(const mx::array& a, const mx::array& b) {
  return mx::array_equal(a, b).item<bool>();
}

class CpuLayer : public testing::Test {
 protected:
  void SetUp() override {
    mx::random::seed(11);
    if (backend_name() != "cpu") {
      GTEST_SKIP() << "on a GPU";
    }
  }

  PackedMatrixPtr codes(int outputs, int inputs, bool bias = false) const {
    const std::vector<mx::array> parts = mx::quantize(random_array({outputs, inputs}), 64, 4);
    Matrix matrix{parts[0], parts[1], parts[2], Quantization{4, 64}};
    if (bias) {
      matrix.bias = random_array({outputs});
    }
    return cpu_->pack(matrix);
  }

  RmsNorm norm(int width) const { return {cpu_->pack_vector(random_array({width})), 1e-6F}; }

  AttentionWeights attention_weights(bool head_norms) const {
    const int q_width = kShape.heads * kHeadDim;
    const int kv_width = kShape.kv_heads * kHeadDim;
    AttentionWeights weights{
        norm(kWidth),
        {codes(q_width, kWidth, true),
         codes(kv_width, kWidth, true),
         codes(kv_width, kWidth, true)},
        std::nullopt,
        codes(kWidth, q_width)
    };
    if (head_norms) {
      weights.head_norms = {norm(kHeadDim), norm(kHeadDim)};
    }
    return weights;
  }

  std::unique_ptr<const Ops> cpu_ = cpu::make_cpu_ops(cpu::available_isas().back(), 2);
};

TEST_F(CpuLayer, swiglu_residual_is_its_parts) {
  const PackedMatrixPtr gate = codes(kHidden, kWidth);
  const PackedMatrixPtr up = codes(kHidden, kWidth);
  const PackedMatrixPtr down = codes(kWidth, kHidden);
  const RmsNorm before = norm(kWidth);
  for (const int rows : kRows) {
    const mx::array x = random_array({rows, kWidth});
    for (const int prefill : {0, rows / 2, rows}) {
      const Activations in{x, prefill};
      const mx::array whole = cpu_->swiglu_residual(in, before, *gate, *up, *down);
      EXPECT_EQ(operations({whole}).size(), rows <= 16 ? 1U : 2U) << rows;
      EXPECT_TRUE(same(whole, cpu_->Ops::swiglu_residual(in, before, *gate, *up, *down))) << rows;
    }
  }
}

TEST_F(CpuLayer, attention_residual_is_its_parts) {
  for (const bool head_norms : {false, true}) {
    const AttentionWeights weights = attention_weights(head_norms);
    const auto buffer = [] {
      const mx::Shape shape = {1, kShape.kv_heads, kCapacity, kHeadDim};
      return mx::astype(random_array(shape), mx::bfloat16);
    };
    const KVBuffer cache{{buffer()}, {buffer()}, kv_format(0, mx::bfloat16, kHeadDim)};
    for (const int rows : kRows) {
      const mx::array x = random_array({rows, kWidth});
      const RopeTables tables{
          random_array({rows, kHeadDim / 2}), random_array({rows, kHeadDim / 2})
      };
      const RopePlan rope{random_array({kHeadDim / 2}), 0, tables};
      for (const bool prefill : {false, true}) {
        const AttentionRows sequence{0, rows, rope, cache, 21, prefill};
        const AttentionResult whole = cpu_->attention_residual(x, weights, kShape, {&sequence, 1});
        const AttentionResult parts =
            cpu_->Ops::attention_residual(x, weights, kShape, {&sequence, 1});
        EXPECT_TRUE(same(whole.output, parts.output)) << rows;
        EXPECT_TRUE(same(whole.caches[0].keys.data, parts.caches[0].keys.data)) << rows;
        EXPECT_TRUE(same(whole.caches[0].values.data, parts.caches[0].values.data)) << rows;
      }
    }
  }
}

TEST_F(CpuLayer, peaks_are_the_reference_s) {
  const std::unique_ptr<const Ops> reference = make_reference_ops(mx::float32, Arithmetic::float32);
  for (const int width : {1, 15, 16, 17, 1000, 20000}) {
    const mx::array logits = mx::subtract(random_array({3, width}), mx::array(5.0F));
    EXPECT_TRUE(same(cpu_->peaks(logits), reference->peaks(logits))) << width;
    EXPECT_TRUE(same(mx::max(cpu_->peaks(logits), 1), mx::max(logits, 1))) << width;
  }
}

TEST_F(CpuLayer, a_peak_of_what_is_not_finite_is_none) {
  const std::unique_ptr<const Ops> reference = make_reference_ops(mx::float32, Arithmetic::float32);
  for (const float odd :
       {std::numeric_limits<float>::quiet_NaN(),
        std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    std::vector<float> logits(40, -1.0F);
    logits[21] = odd;
    const mx::array row(logits.begin(), {1, 40});
    for (const Ops* ops : {cpu_.get(), reference.get()}) {
      const mx::array peaks = ops->peaks(row);
      EXPECT_TRUE(same(mx::isnan(peaks), mx::array({false, true, false}, {1, 3}))) << ops->name();
    }
  }
}

}  // namespace
}  // namespace whimbrel::ops
