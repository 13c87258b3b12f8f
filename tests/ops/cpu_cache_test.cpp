// A decode step writes its row into the cache where it lies: copied, it would cost as much as the
// whole context.

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <memory>
#include <utility>

#include "ops/cpu/cpu_ops.h"
#include "ops/device.h"
#include "ops/ops.h"

namespace whimbrel::ops {
namespace {

constexpr int kHeadDim = 64;
constexpr int kCapacity = 32;

mx::array filled(mx::Shape shape, mx::Dtype dtype) {
  mx::array array = mx::full(std::move(shape), 0.5F, dtype);
  array.eval();
  return array;
}

/// Keys and values of a layer, in codes where there are bits.
KVBuffer cache_of(int bits) {
  const KVFormat format = kv_format(bits, mx::bfloat16, kHeadDim);
  const auto rows = [&format]() -> KVRows {
    if (format.bits == 0) {
      return {filled({1, 1, kCapacity, kHeadDim}, format.dtype)};
    }
    const mx::Shape groups = {1, 1, kCapacity, kHeadDim / format.group_size};
    return {
        filled({1, 1, kCapacity, kHeadDim / 4}, mx::uint32),
        filled(groups, format.dtype),
        filled(groups, format.dtype)
    };
  };
  return {rows(), rows(), format};
}

class CpuCache : public testing::TestWithParam<int> {};

TEST_P(CpuCache, takes_a_row_where_it_lies) {
  if (backend_name() != "cpu") {
    GTEST_SKIP() << "on a GPU";
  }
  const std::unique_ptr<const Ops> ops = cpu::make_cpu_ops(cpu::available_isas().back(), 2);
  const mx::array row = filled({1, kHeadDim}, mx::float32);
  const mx::array angles = filled({1, kHeadDim / 2}, mx::float32);
  const RopePlan rope{angles, 0, RopeTables{angles, angles}};
  KVBuffer cache = cache_of(GetParam());
  const auto* keys = cache.keys.data.data<std::byte>();
  const auto* values = cache.values.data.data<std::byte>();
  for (int cached = 0; cached < 3; ++cached) {
    const AttentionRows sequence{0, 1, rope, cache, cached, false};
    AttentionResult result = ops->attention({row, row, row}, {1, 1, kHeadDim}, {}, {&sequence, 1});
    cache = std::move(result.caches[0]);
    result.caches.clear();
    mx::eval(result.output);
    mx::synchronize();
    EXPECT_EQ(cache.keys.data.data<std::byte>(), keys);
    EXPECT_EQ(cache.values.data.data<std::byte>(), values);
  }
}

INSTANTIATE_TEST_SUITE_P(Bits, CpuCache, testing::Values(0, 8));

}  // namespace
}  // namespace whimbrel::ops
