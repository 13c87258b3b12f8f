// An operation that ran before takes nothing from the heap when it runs again.

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <functional>
#include <memory>
#include <vector>

#include "ops/cpu/cpu_ops.h"
#include "ops/device.h"
#include "ops/ops.h"
#include "tests/support/allocations.h"

namespace whimbrel::ops {
namespace {

constexpr int kWidth = 256;
constexpr int kHeadDim = 64;
constexpr int kHeads = kWidth / kHeadDim;
constexpr int kCapacity = 1024;
constexpr int kRowsOfOneOperation = 16;  // with more a layer's operations are made of parts

mx::array random_array(const mx::Shape& shape) {
  mx::array array = mx::random::normal(shape);
  array.eval();
  return array;
}

/// Rows that operations take: one and few as in decoding, many as in prefill.
class CpuAllocations : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (backend_name() != "cpu") {
      GTEST_SKIP() << "on a GPU";
    }
  }

  PackedMatrixPtr codes(const mx::Shape& shape) const {
    const std::vector<mx::array> parts = mx::quantize(random_array(shape), 64, 4);
    return cpu_->pack({parts[0], parts[1], parts[2], Quantization{4, 64}});
  }

  mx::array rows(int width = kWidth) const { return random_array({GetParam(), width}); }

  RmsNorm norm() const { return {cpu_->pack_vector(random_array({kWidth})), 1e-6F}; }

  RopeTables tables() const {
    return {random_array({GetParam(), kHeadDim / 2}), random_array({GetParam(), kHeadDim / 2})};
  }

  /// What threads of the stream and of the kernels take for `run`, behind two runs that warm up.
  int allocations(const std::function<std::vector<mx::array>()>& run) const {
    std::vector<std::vector<mx::array>> kept;  // what MLX frees on the stream's thread counts
    const auto evaluate = [&] {
      kept.push_back(run());
      mx::eval(kept.back());
      mx::synchronize();
    };
    evaluate();
    evaluate();
    const test::AllocationsElsewhere counted;
    evaluate();
    return counted.count();
  }

  std::unique_ptr<const Ops> cpu_ = cpu::make_cpu_ops(cpu::available_isas().back(), 2);
};

TEST_P(CpuAllocations, products) {
  const std::vector<PackedMatrixPtr> ws = {
      codes({kWidth, kWidth}), codes({64, kWidth}), codes({64, kWidth})
  };
  const mx::array x = rows();
  const Activations in{x, x.shape(0) / 2};
  const RmsNorm before = norm();
  EXPECT_EQ(allocations([&] { return cpu_->norm_linears(in, before, ws); }), 0);
  EXPECT_EQ(allocations([&] { return std::vector{cpu_->linear_residual(in, *ws[0], x)}; }), 0);
  EXPECT_EQ(
      allocations([&] { return std::vector{cpu_->norm_swiglu(in, before, *ws[1], *ws[2])}; }), 0
  );
  EXPECT_EQ(allocations([&] { return std::vector{cpu_->norm(x, before)}; }), 0);
  const PackedMatrixPtr down = codes({kWidth, 64});
  const auto swiglu = [&] { return cpu_->swiglu_residual(in, before, *ws[1], *ws[2], *down); };
  if (GetParam() <= kRowsOfOneOperation) {
    EXPECT_EQ(allocations([&] { return std::vector{swiglu()}; }), 0);
  }
  EXPECT_EQ(allocations([&] { return std::vector{cpu_->peaks(x)}; }), 0);
}

TEST_P(CpuAllocations, embedding) {
  const PackedMatrixPtr table = codes({32, kWidth});
  const mx::array ids = mx::zeros({GetParam()}, mx::int32);
  mx::eval(ids);
  EXPECT_EQ(allocations([&] { return std::vector{cpu_->embed(*table, ids)}; }), 0);
}

TEST_P(CpuAllocations, experts) {
  const Experts experts{
      codes({6, kWidth}),
      codes({6, 128, kWidth}),
      codes({6, 128, kWidth}),
      codes({6, kWidth, 128}),
      2,
      true
  };
  const mx::array x = rows();
  const RmsNorm before = norm();
  EXPECT_EQ(
      allocations([&] { return std::vector{cpu_->experts_residual(x, before, experts)}; }), 0
  );
}

TEST_P(CpuAllocations, attention) {
  const Qkv qkv{rows(), rows(kHeadDim), rows(kHeadDim)};
  const HeadShape shape = {kHeads, 1, kHeadDim};
  const AttentionWeights weights{
      norm(),
      {codes({kWidth, kWidth}), codes({kHeadDim, kWidth}), codes({kHeadDim, kWidth})},
      std::nullopt,
      codes({kWidth, kWidth})
  };
  const RopePlan rope{random_array({kHeadDim / 2}), 0, tables()};
  const mx::array empty = mx::zeros({1, 1, kCapacity, kHeadDim}, mx::bfloat16);
  mx::eval(empty);
  const KVBuffer cache{{empty}, {empty}, kv_format(0, mx::bfloat16, kHeadDim)};
  for (const auto& [whole, prefill] :
       {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
    if (whole && GetParam() > kRowsOfOneOperation) {
      continue;
    }
    // Warmed up at the start of a context, counted far into it: a token needs no more than another.
    std::vector<int> contexts = {700, 0, 0};
    const auto attend = [&, whole = whole, prefill = prefill] {
      const AttentionRows sequence{0, GetParam(), rope, cache, contexts.back(), prefill};
      contexts.pop_back();
      const AttentionResult result =
          whole ? cpu_->attention_residual(qkv.q, weights, shape, {&sequence, 1})
                : cpu_->attention(qkv, shape, {}, {&sequence, 1});
      const KVBuffer& written = result.caches[0];
      return std::vector{result.output, written.keys.data, written.values.data};
    };
    EXPECT_EQ(allocations(attend), 0) << whole << prefill;
  }
}

TEST_P(CpuAllocations, segments) {
  const mx::array qkv = rows(3 * kWidth);
  const RopeTables rope = tables();
  const std::vector<int> borders = {0, GetParam()};
  EXPECT_EQ(
      allocations([&] {
        const RowRange all = {0, GetParam()};
        return std::vector{cpu_->segment_attention(qkv, kHeads, rope, borders, all)};
      }),
      0
  );
}

INSTANTIATE_TEST_SUITE_P(Rows, CpuAllocations, testing::Values(1, 5, 40));

}  // namespace
}  // namespace whimbrel::ops
