#include "ops/device.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>

namespace whimbrel::ops {
namespace {

namespace mx = mlx::core;

#if defined(__linux__)
// The wheel's own BLAS is the reference one, some 40 times slower.
TEST(Device, matrix_products_reach_openblas) {
  if (backend_name() == "cpu") {
    EXPECT_TRUE(blas_description().starts_with("OpenBLAS")) << blas_description();
  }
}
#endif

TEST(Device, threads_do_not_change_a_product) {
  const mx::array a = mx::random::normal({64, 256});
  const mx::array b = mx::random::normal({256, 64});
  set_threads(1);
  const mx::array one = mx::matmul(a, b);
  mx::eval(one);
  set_threads(2);
  const mx::array two = mx::matmul(a, b);
  EXPECT_LT(mx::max(mx::abs(mx::subtract(one, two))).item<float>(), 1e-4F);
}

TEST(Device, says_what_it_is) {
  EXPECT_FALSE(device_name().empty());
  EXPECT_NE(device_name(), "unknown");
}

TEST(Device, threads_are_those_that_were_set) {
  set_threads(1);
  EXPECT_EQ(threads(), 1);
}

}  // namespace
}  // namespace whimbrel::ops
