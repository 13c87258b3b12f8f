#include "weights/packing.h"

#include <gtest/gtest.h>

#include "tests/weights/weight_folder.h"

namespace whimbrel {

namespace {

using test::contains;

/// The tensors of a packed [rows, columns] matrix, right until a test changes one.
struct Packed {
  TensorInfo weight{"m.weight", StoredDtype::u32, {}, 0, 0};
  TensorInfo scales{"m.scales", StoredDtype::bf16, {}, 0, 0};
  TensorInfo biases{"m.biases", StoredDtype::bf16, {}, 0, 0};

  Packed(int64_t rows, int64_t columns, int bits, int group_size) {
    weight.shape = {rows, columns * bits / 32};
    scales.shape = biases.shape = {rows, columns / group_size};
  }

  Packing check(
      int64_t rows, int64_t columns, const std::optional<QuantizationConfig>& stated
  ) const {
    return check_packing({weight, scales, biases}, {}, rows, columns, stated, "file");
  }

  std::string refusal(
      int64_t rows = 8,
      int64_t columns = 256,
      const std::optional<QuantizationConfig>& stated = QuantizationConfig{}
  ) const {
    return test::model_error([&] { check(rows, columns, stated); });
  }
};

}  // namespace

TEST(Packing, EveryWidthAndGroup) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group_size : {32, 64, 128}) {
      const Packed packed(8, 384, bits, group_size);
      const Packing packing = packed.check(8, 384, QuantizationConfig{bits, group_size});
      EXPECT_EQ(packing.bits, bits);
      EXPECT_EQ(packing.group_size, group_size);
      EXPECT_EQ(packed.check(8, 384, QuantizationConfig{}).bits, bits);
    }
  }
}

TEST(Packing, FileAndConfigHaveToAgree) {
  const Packed packed(8, 256, 4, 64);
  EXPECT_TRUE(contains(
      packed.refusal(8, 256, QuantizationConfig{8, 64}),
      "tensor \"m.weight\": got 4 bits in groups of 64, expected 8 bits in groups of 64"
  ));
  EXPECT_TRUE(
      contains(packed.refusal(8, 256, QuantizationConfig{4, 32}), "expected 4 bits in groups of 32")
  );
  EXPECT_TRUE(contains(packed.refusal(8, 256, std::nullopt), "expected no quantisation"));
}

TEST(Packing, RefusesShapesThatFitNoMatrix) {
  const Packed packed(8, 256, 4, 64);
  EXPECT_TRUE(contains(
      packed.refusal(9, 256),
      "tensor \"m.weight\": got packed shape [8, 32] with scales [8, 4], expected [9, 256 * bits"
  ));
  EXPECT_TRUE(contains(packed.refusal(8, 255), "expected [8, 255 * bits"));
  EXPECT_TRUE(contains(packed.refusal(8, 1024), "got packed shape"));  // would be one bit
  EXPECT_TRUE(contains(Packed(8, 256, 7, 64).refusal(), "got packed shape"));
  EXPECT_TRUE(contains(Packed(8, 256, 4, 16).refusal(), "got packed shape"));
  EXPECT_TRUE(contains(Packed(8, 256, 4, 256).refusal(), "got packed shape"));
  // One word too many in each row would still make 4 bits when rounded down, 388 / 6 a group of 64.
  Packed uneven(8, 256, 4, 64);
  uneven.weight.shape = {8, 33};
  EXPECT_TRUE(contains(uneven.refusal(), "got packed shape [8, 33]"));
  uneven.weight.shape = {8, 97};
  uneven.scales.shape = uneven.biases.shape = {8, 6};
  EXPECT_TRUE(contains(uneven.refusal(8, 388), "with scales [8, 6]"));
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {}, {8}, {8, 0}, {8, 3}, {7, 4}, {1, 8, 4}, {8, 2147483647}
       }) {
    Packed broken(8, 256, 4, 64);
    broken.scales.shape = broken.biases.shape = shape;
    EXPECT_TRUE(contains(broken.refusal(), "got packed shape")) << shape_text(shape);
    broken = Packed(8, 256, 4, 64);
    broken.weight.shape = shape;
    EXPECT_TRUE(contains(broken.refusal(), "got packed shape")) << shape_text(shape);
  }
}

TEST(Packing, RefusesOtherDtypes) {
  Packed packed(8, 256, 4, 64);
  packed.weight.dtype = StoredDtype::i32;
  EXPECT_TRUE(contains(packed.refusal(), "\"m.weight\": got dtype I32 beside scales"));
  packed = Packed(8, 256, 4, 64);
  packed.scales.dtype = packed.biases.dtype = StoredDtype::u8;
  EXPECT_TRUE(contains(packed.refusal(), "\"m.scales\": got dtype U8, expected BF16, F16 or F32"));
  packed = Packed(8, 256, 4, 64);
  packed.biases.dtype = StoredDtype::f16;
  EXPECT_TRUE(contains(packed.refusal(), "\"m.biases\": got F16 of shape [8, 4], expected BF16"));
  packed = Packed(8, 256, 4, 64);
  packed.biases.shape = {8, 8};
  EXPECT_TRUE(contains(packed.refusal(), "\"m.biases\": got BF16 of shape [8, 8]"));
  for (const StoredDtype dtype : {StoredDtype::f16, StoredDtype::f32}) {
    packed = Packed(8, 256, 4, 64);
    packed.scales.dtype = packed.biases.dtype = dtype;
    EXPECT_EQ(packed.check(8, 256, QuantizationConfig{}).bits, 4);
  }
}

}  // namespace whimbrel
