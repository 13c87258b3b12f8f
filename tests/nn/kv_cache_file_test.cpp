#include "nn/kv_cache_file.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>
#include <unistd.h>

#include "base/error.h"

namespace whimbrel::nn {
namespace {

namespace mx = mlx::core;

constexpr ops::HeadShape kShape = {4, 2, 32};

class KVCacheFile : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }

  void save(const ops::KVFormat& format) {
    KVCache cache(2, kShape, format);
    for (int i = 0; i < 2; ++i) {
      reserve(cache.layer(i), 5);
      cache.layer(i).length = 5;
    }
    cache.drop(1, 2);
    save_kv_cache(cache, file_);
  }

  /// The file with one tensor and the metadata changed by `change`.
  template <typename Change>
  Fault refusal(const Change& change) {
    save({.dtype = mx::float32});
    auto [arrays, metadata] = mx::load_safetensors(file_.string());
    for (auto& [name, array] : arrays) {
      array.eval();
    }
    change(arrays, metadata);
    mx::save_safetensors(file_.string(), arrays, metadata);
    try {
      read_kv_cache(file_, 2, kShape);
    } catch (const Error& error) {
      return error.fault();
    }
    ADD_FAILURE() << "it was read";
    return Fault::check;
  }

  std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) /
      fmt::format("kv-{}-{}.safetensors", getpid(), static_cast<void*>(this));
};

TEST_F(KVCacheFile, is_read_as_it_was_written) {
  for (const int bits : {0, 8}) {
    save(ops::kv_format(bits, mx::float32, kShape.head_dim));
    const KVCache read = read_kv_cache(file_, 2, kShape);
    EXPECT_EQ(read.length(), 3);
    EXPECT_EQ(read.tokens(), 5);
    EXPECT_EQ(read.layers()[0].buffer.format.bits, bits);
  }
}

TEST_F(KVCacheFile, another_models_or_a_broken_one_is_refused) {
  save({.dtype = mx::float32});
  EXPECT_THROW(read_kv_cache(file_, 3, kShape), Error);
  EXPECT_THROW(read_kv_cache(file_, 2, {4, 4, 32}), Error);
  EXPECT_THROW(read_kv_cache(file_, 2, {4, 2, 64}), Error);
  for (const char* value : {"", "x", "-1", "3 ", "99999999999"}) {
    EXPECT_EQ(
        refusal([&](auto&, auto& metadata) { metadata.insert_or_assign("length", value); }),
        Fault::model
    ) << value;
  }
  EXPECT_EQ(refusal([](auto& arrays, auto&) { arrays.erase("layers.1.keys"); }), Fault::model);
  EXPECT_EQ(
      refusal([](auto& arrays, auto&) {
        arrays.insert_or_assign("layers.1.keys.scales", mx::zeros({1, 2, 3, 0}));
      }),
      Fault::model
  );
  EXPECT_EQ(
      refusal([](auto& arrays, auto&) {
        arrays.insert_or_assign("layers.1.values", mx::zeros({1, 2, 3, 32}, mx::float16));
      }),
      Fault::model
  );
  std::filesystem::remove(file_);
  try {
    read_kv_cache(file_, 2, kShape);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::io);
  }
}

}  // namespace
}  // namespace whimbrel::nn
