#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <cmath>

#include "base/error.h"
#include "ops/device.h"
#include "ops/graph.h"
#include "ops/ops.h"

namespace whimbrel::ops {
namespace {

std::vector<float> to_floats(const mx::array& array) {
  mx::array values = mx::contiguous(mx::astype(array, mx::float32));
  values.eval();
  return {values.data<float>(), values.data<float>() + values.size()};
}

float largest_difference(const mx::array& a, const mx::array& b) {
  return mx::max(mx::abs(mx::subtract(a, b))).item<float>();
}

Matrix quantise(const mx::array& weight, int group_size, int bits) {
  const std::vector<mx::array> parts = mx::quantize(weight, group_size, bits);
  return {parts[0], parts[1], parts[2], Quantization{bits, group_size}};
}

/// Attention by its definition, one query head after another, in float64.
std::vector<double> naive_attention(
    const std::vector<float>& q,
    const std::vector<float>& k,
    const std::vector<float>& v,
    const HeadShape& shape,
    int rows,
    int cached
) {
  const auto at = [&shape](const std::vector<float>& x, int row, int heads, int head, int i) {
    return double{x[static_cast<size_t>((row * heads + head) * shape.head_dim + i)]};
  };
  std::vector<double> output;
  for (int row = 0; row < rows; ++row) {
    for (int head = 0; head < shape.heads; ++head) {
      const int kv_head = head / (shape.heads / shape.kv_heads);
      std::vector<double> weights;
      double total = 0;
      for (int key = 0; key <= cached + row; ++key) {
        double score = 0;
        for (int i = 0; i < shape.head_dim; ++i) {
          score += at(q, row, shape.heads, head, i) * at(k, key, shape.kv_heads, kv_head, i);
        }
        weights.push_back(std::exp(score / std::sqrt(shape.head_dim)));
        total += weights.back();
      }
      for (int i = 0; i < shape.head_dim; ++i) {
        double sum = 0;
        for (size_t key = 0; key < weights.size(); ++key) {
          sum += weights[key] / total * at(v, static_cast<int>(key), shape.kv_heads, kv_head, i);
        }
        output.push_back(sum);
      }
    }
  }
  return output;
}

constexpr HeadShape kShape = {4, 2, 8};

/// A plan that rotates nothing, so that attention can be checked by itself.
RopePlan no_rotation(int rows) {
  const mx::array cos = mx::ones({rows, kShape.head_dim / 2});
  return {mx::ones({kShape.head_dim / 2}), 0, RopeTables{cos, mx::zeros_like(cos)}};
}

/// One sequence's attention.
struct Attended {
  mx::array output;
  KVBuffer cache;
};

Attended attend(
    const Ops& ops,
    const Qkv& qkv,
    const HeadShape& shape,
    const std::optional<HeadNorms>& norms,
    const RopePlan& rope,
    const KVBuffer& cache,
    int cached
) {
  const AttentionRows rows[] = {{0, qkv.q.shape(0), rope, cache, cached, true}};
  AttentionResult result = ops.attention(qkv, shape, norms, rows);
  return {result.output, std::move(result.caches[0])};
}

class ReferenceAttention : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(ReferenceAttention, equals_its_definition) {
  const auto [cached, rows] = GetParam();
  const std::unique_ptr<const Ops> ops = make_reference_ops(mx::float32, Arithmetic::float32);
  const mx::array q = mx::random::normal({cached + rows, 32});
  const mx::array k = mx::random::normal({cached + rows, 16});
  const mx::array v = mx::random::normal({cached + rows, 16});
  const auto part = [](const mx::array& x, int first, int end) {
    return mx::slice(x, {first, 0}, {end, x.shape(1)});
  };
  KVBuffer cache{{mx::zeros({1, 2, 64, 8})}, {mx::zeros({1, 2, 64, 8})}, {mx::float32}};
  if (cached > 0) {
    const Qkv before{part(q, 0, cached), part(k, 0, cached), part(v, 0, cached)};
    cache = attend(*ops, before, kShape, std::nullopt, no_rotation(cached), cache, 0).cache;
  }
  const int end = cached + rows;
  const Qkv now{part(q, cached, end), part(k, cached, end), part(v, cached, end)};
  const Attended result = attend(*ops, now, kShape, std::nullopt, no_rotation(rows), cache, cached);
  const std::vector<float> found = to_floats(result.output);
  const std::vector<double> expected = naive_attention(
      to_floats(part(q, cached, end)), to_floats(k), to_floats(v), kShape, rows, cached
  );
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    rows_behind_cache,
    ReferenceAttention,
    testing::Values(
        std::pair(0, 1), std::pair(0, 7), std::pair(5, 1), std::pair(5, 3), std::pair(40, 20)
    )
);

TEST(ReferenceOps, segments_see_nothing_of_each_other) {
  const std::unique_ptr<const Ops> ops = make_reference_ops(mx::float32, Arithmetic::float32);
  const mx::array qkv = mx::random::normal({10, 3 * 16});
  const RopeTables rope{mx::ones({10, 4}), mx::zeros({10, 4})};
  const std::vector<int> borders = {0, 3, 6, 10};
  const mx::array all = ops->segment_attention(qkv, 2, rope, borders, {0, 10});
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    const int rows = borders[i + 1] - borders[i];
    const mx::array alone = ops->segment_attention(
        mx::slice(qkv, {borders[i], 0}, {borders[i + 1], 48}),
        2,
        {mx::ones({rows, 4}), mx::zeros({rows, 4})},
        std::vector<int>{0, rows},
        {0, rows}
    );
    const mx::array part = mx::slice(all, {borders[i], 0}, {borders[i + 1], 16});
    EXPECT_LT(largest_difference(alone, part), 1e-6F) << i;
  }
}

TEST(ReferenceOps, queries_in_pieces_are_those_of_the_whole) {
  const std::unique_ptr<const Ops> ops = make_reference_ops(mx::float32, Arithmetic::float32);
  const mx::array qkv = mx::random::normal({16, 3 * 16});
  const mx::array angles = mx::random::normal({16, 4});
  const RopeTables rope{mx::cos(angles), mx::sin(angles)};
  const std::vector<int> borders = {0, 7, 7, 9, 11, 13, 16};
  const mx::array whole = ops->segment_attention(qkv, 2, rope, borders, {0, 16});
  std::vector<mx::array> pieces;
  for (const RowRange& queries :
       {RowRange{0, 3}, RowRange{3, 5}, RowRange{8, 6}, RowRange{14, 2}}) {
    pieces.push_back(ops->segment_attention(qkv, 2, rope, borders, queries));
    EXPECT_EQ(pieces.back().shape(0), queries.count);
  }
  EXPECT_LT(largest_difference(mx::concatenate(pieces, 0), whole), 1e-6F);
}

/// A video has many frames: a part of its attention is no work on all of them.
TEST(ReferenceOps, of_segments_that_no_query_is_in_nothing_is_computed) {
  const std::unique_ptr<const Ops> ops = make_reference_ops(mx::float32, Arithmetic::float32);
  mx::array qkv = mx::random::normal({12, 3 * 16});
  qkv.eval();
  const RopeTables rope{mx::ones({12, 4}), mx::zeros({12, 4})};
  const std::vector<int> borders = {0, 4, 8, 12};
  int rotated = 0;
  walk_graph({ops->segment_attention(qkv, 2, rope, borders, {5, 3})}, [&](const mx::array& node) {
    if (node.has_primitive() && std::string(node.primitive().name()) == "Multiply") {
      rotated = std::max(rotated, node.shape(0));
    }
  });
  EXPECT_EQ(rotated, 4);
}

TEST(ReferenceOps, equal_segments_share_one_attention) {
  const std::unique_ptr<const Ops> ops = make_reference_ops(mx::float32, Arithmetic::float32);
  const mx::array qkv = mx::random::normal({10, 3 * 16});
  const RopeTables rope{mx::ones({10, 4}), mx::zeros({10, 4})};
  const auto softmaxes = [&](const std::vector<int>& borders) {
    return operations({ops->segment_attention(qkv, 2, rope, borders, {0, 10})}).count("Softmax");
  };
  EXPECT_EQ(softmaxes({0, 2, 4, 6, 8, 10}), 1U);
  EXPECT_EQ(softmaxes({0, 4, 8, 10}), 2U);
}

TEST(ReferenceOps, one_query_row_has_no_mask) {
  EXPECT_EQ(mask_for(1), Mask::none);
  EXPECT_EQ(mask_for(2), Mask::causal);
  const std::unique_ptr<const Ops> ops = make_reference_ops(mx::float32, Arithmetic::float32);
  const KVBuffer cache{{mx::zeros({1, 2, 64, 8})}, {mx::zeros({1, 2, 64, 8})}, {mx::float32}};
  const auto graph = [&](int rows) {
    const Qkv qkv{mx::zeros({rows, 32}), mx::zeros({rows, 16}), mx::zeros({rows, 16})};
    return operations(
        {attend(*ops, qkv, kShape, std::nullopt, no_rotation(rows), cache, 20).output}
    );
  };
  EXPECT_EQ(graph(1).count("Select"), 0U);
  EXPECT_GT(graph(2).count("Select"), 0U);
}

struct Packing {
  int bits;
  int group_size;
};

class ReferencePacking : public testing::TestWithParam<Packing> {};

TEST_P(ReferencePacking, widens_exactly) {
  const auto [bits, group_size] = GetParam();
  const mx::array weight = mx::random::normal({6, 256});
  const Matrix packed = quantise(weight, group_size, bits);
  const mx::array expected =
      mx::dequantize(packed.weight, *packed.scales, packed.offsets, group_size, bits);
  const mx::array x = mx::random::normal({3, 256});
  for (const Arithmetic arithmetic : {Arithmetic::native, Arithmetic::float32}) {
    const std::unique_ptr<const Ops> ops = make_reference_ops(mx::float32, arithmetic);
    const PackedMatrixPtr handle = ops->pack(packed);
    const mx::array product = mx::matmul(x, mx::transpose(expected));
    EXPECT_LT(largest_difference(ops->linear(prefill_rows(x), *handle), product), 1e-4F);
    const mx::array ids({4, 0}, mx::int32);
    EXPECT_EQ(largest_difference(ops->embed(*handle, ids), mx::take(expected, ids, 0)), 0.0F);
  }
}

INSTANTIATE_TEST_SUITE_P(
    all,
    ReferencePacking,
    testing::ValuesIn([] {
      std::vector<Packing> packings;
      for (const int bits : {2, 3, 4, 5, 6, 8}) {
        for (const int group_size : {32, 64, 128}) {
          packings.push_back({bits, group_size});
        }
      }
      return packings;
    }()),
    [](const testing::TestParamInfo<Packing>& param) {
      return fmt::format("bits_{}_group_{}", param.param.bits, param.param.group_size);
    }
);

TEST(ReferenceOps, keeps_the_activation_dtype) {
  for (const auto& [dtype, arithmetic] : std::vector<std::pair<mx::Dtype, Arithmetic>>{
           {mx::float32, Arithmetic::native},
           {mx::bfloat16, Arithmetic::native},
           {mx::float16, Arithmetic::native},
           {mx::bfloat16, Arithmetic::float32},
           {mx::float16, Arithmetic::float32}
       }) {
    const std::unique_ptr<const Ops> ops = make_reference_ops(dtype, arithmetic);
    const Activations x = prefill_rows(mx::zeros({2, 64}, dtype));
    const RmsNorm norm{ops->pack_vector(mx::ones({64})), 1e-6F};
    const PackedMatrixPtr w = ops->pack({mx::zeros({64, 64})});
    EXPECT_EQ(ops->linear_residual(x, *w, x.rows).dtype(), dtype);
    EXPECT_EQ(ops->linear_gelu(x, *w, Gelu::quick).dtype(), dtype);
    EXPECT_EQ(ops->norm_swiglu(x, norm, *w, *w).dtype(), dtype);
    EXPECT_EQ(ops->norm_linears(x, norm, {&w, 1})[0].dtype(), dtype);
    EXPECT_EQ(scalar(0.5F, dtype).dtype(), dtype);
  }
}

TEST(ReferenceOps, each_gelu_is_its_own) {
  const std::unique_ptr<const Ops> ops = make_reference_ops(mx::float32, Arithmetic::float32);
  const PackedMatrixPtr identity = ops->pack({mx::eye(3)});
  const mx::array x({-1.0F, 0.5F, 3.0F}, {1, 3});
  const std::vector<std::pair<Gelu, std::vector<double>>> table = {
      {Gelu::erf, {-0.15865525, 0.34573123, 2.99595031}},
      {Gelu::tanh, {-0.15880801, 0.34571401, 2.99636261}},
      {Gelu::quick, {-0.15420423, 0.35038844, 2.98192869}},
  };
  for (const auto& [gelu, expected] : table) {
    const std::vector<float> y = to_floats(ops->linear_gelu(prefill_rows(x), *identity, gelu));
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(y[i], expected[i], 1e-6) << static_cast<int>(gelu) << " " << i;
    }
  }
}

TEST(ReferenceOps, layer_norm_takes_mean_and_variance) {
  const std::unique_ptr<const Ops> ops = make_reference_ops(mx::float32, Arithmetic::float32);
  const LayerNorm norm{mx::full({4}, 2.0F), mx::full({4}, 1.0F), 0.0F};
  const std::vector<float> y =
      to_floats(ops->norm(mx::array({1.0F, 2.0F, 3.0F, 4.0F}, {1, 4}), norm));
  const double step = 1 / std::sqrt(1.25);
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(y[i], 1 + 2 * step * (static_cast<double>(i) - 1.5), 1e-5);
  }
}

TEST(ReferenceOps, head_norms_run_over_each_head_before_rope) {
  const std::unique_ptr<const Ops> ops = make_reference_ops(mx::float32, Arithmetic::float32);
  const mx::array q = mx::random::normal({3, 32});
  const mx::array k = mx::random::normal({3, 16});
  const mx::array v = mx::random::normal({3, 16});
  const HeadNorms norms{{mx::random::normal({8}), 1e-6F}, {mx::random::normal({8}), 1e-6F}};
  const auto normed = [](const mx::array& x, const RmsNorm& norm) {
    return mx::reshape(
        mx::fast::rms_norm(mx::reshape(x, {3, -1, 8}), norm.weight, norm.eps), x.shape()
    );
  };
  const KVBuffer cache{{mx::zeros({1, 2, 64, 8})}, {mx::zeros({1, 2, 64, 8})}, {mx::float32}};
  const RopePlan rope{mx::full({4}, 2.0F), 3, std::nullopt};
  const auto attended = [&](const Qkv& qkv, const std::optional<HeadNorms>& with) {
    return attend(*ops, qkv, kShape, with, rope, cache, 0).output;
  };
  const mx::array expected =
      attended({normed(q, norms.q_norm), normed(k, norms.k_norm), v}, std::nullopt);
  EXPECT_LT(largest_difference(attended({q, k, v}, norms), expected), 1e-5F);
  EXPECT_GT(largest_difference(attended({q, k, v}, std::nullopt), expected), 1e-2F);
}

TEST(ReferenceOps, an_eight_bit_cache_is_close_to_a_plain_one) {
  const std::unique_ptr<const Ops> ops = make_reference_ops(mx::float32, Arithmetic::float32);
  const HeadShape shape{2, 2, 64};
  const KVFormat format = kv_format(8, mx::float32, 64);
  EXPECT_EQ(format.group_size, 64);
  const auto rows = [&] {
    return KVRows{
        mx::zeros({1, 2, 32, 16}, mx::uint32), mx::zeros({1, 2, 32, 1}), mx::zeros({1, 2, 32, 1})
    };
  };
  const KVBuffer packed{rows(), rows(), format};
  const KVBuffer plain{{mx::zeros({1, 2, 32, 64})}, {mx::zeros({1, 2, 32, 64})}, {mx::float32}};
  const Qkv qkv{
      mx::random::normal({9, 128}), mx::random::normal({9, 128}), mx::random::normal({9, 128})
  };
  const RopePlan rope{mx::full({32}, 2.0F), 0, std::nullopt};
  const mx::array expected = attend(*ops, qkv, shape, std::nullopt, rope, plain, 0).output;
  const mx::array found = attend(*ops, qkv, shape, std::nullopt, rope, packed, 0).output;
  EXPECT_LT(largest_difference(found, expected), 0.05F);
  EXPECT_GT(largest_difference(found, expected), 0.0F);
  EXPECT_THROW(kv_format(8, mx::float32, 80), Error);
  EXPECT_THROW(kv_format(4, mx::float32, 64), Error);
}

/// One row at a time, expert by expert, in float64.
TEST(ReferenceOps, experts_are_chosen_by_softmax_and_weighted) {
  constexpr int kExperts = 4;
  const std::unique_ptr<const Ops> ops = make_reference_ops(mx::float32, Arithmetic::float32);
  const mx::array x = mx::random::normal({5, 8});
  const RmsNorm norm{mx::ones({8}), 1e-6F};
  const mx::array router = mx::random::normal({kExperts, 8});
  const mx::array gate = mx::random::normal({kExperts, 6, 8});
  const mx::array up = mx::random::normal({kExperts, 6, 8});
  const mx::array down = mx::random::normal({kExperts, 8, 6});
  for (const bool renormalized : {true, false}) {
    const Experts experts{
        ops->pack({router}), ops->pack({gate}), ops->pack({up}), ops->pack({down}), 2, renormalized
    };
    const mx::array y = mx::fast::rms_norm(x, norm.weight, norm.eps);
    mx::array expected = x;
    const mx::array p = mx::softmax(mx::matmul(y, mx::transpose(router)), -1);
    const mx::array second =
        mx::take(mx::partition(p, kExperts - 2, -1), mx::array({kExperts - 2}), -1);
    mx::array share = mx::where(mx::greater_equal(p, second), p, mx::zeros_like(p));
    if (renormalized) {
      share = mx::divide(share, mx::sum(share, -1, true));
    }
    for (int e = 0; e < kExperts; ++e) {
      const mx::array g = mx::matmul(y, mx::transpose(mx::take(gate, e, 0)));
      const mx::array u = mx::matmul(y, mx::transpose(mx::take(up, e, 0)));
      const mx::array h = mx::multiply(mx::multiply(g, mx::sigmoid(g)), u);
      const mx::array out = mx::matmul(h, mx::transpose(mx::take(down, e, 0)));
      expected = mx::add(expected, mx::multiply(mx::take(share, mx::array({e}), -1), out));
    }
    EXPECT_LT(largest_difference(ops->experts_residual(x, norm, experts), expected), 1e-3F);
  }
}

TEST(MakeOps, refuses_operations_that_are_not_built_in) {
  EXPECT_EQ(make_ops("", mx::bfloat16)->name(), backend_name() == "cpu" ? "cpu" : "reference");
  EXPECT_EQ(make_ops("reference", mx::bfloat16)->name(), "reference");
  EXPECT_THROW(make_ops("cuda", mx::bfloat16), Error);
}

}  // namespace
}  // namespace whimbrel::ops
