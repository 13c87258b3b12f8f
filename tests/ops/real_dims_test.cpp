// Operations on inputs as wide as those of published models against the reference operations, on
// every instruction set; and attention of each head size with each number of queries a key head.
// Few outputs: each is computed by itself, and all of them stand in
// tests/engine/real_dims_test.cpp.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/kernels.h"
#include "ops/device.h"
#include "ops/ops.h"

namespace whimbrel::ops {
namespace {

/// Inputs of matrices in decoders: hidden sizes, heads' outputs, feed-forwards, experts; 2B, 3B,
/// 4B, 7B, 30B-A3B.
constexpr int kDecoderWidths[] = {768, 1536, 2048, 2560, 3584, 4096, 8960, 9728, 11008, 18944};

/// The same of towers: patches, hidden sizes, feed-forwards, merged units.
constexpr int kTowerWidths[] = {1176, 1536, 1024, 1152, 1280, 3420, 4096, 4304, 4608, 5120};

constexpr int kOutputs = 100;  // no multiple of a panel
constexpr int kRows[] = {1, 5, 33};

/// ||found - expected|| / ||expected||.
double distance(const mx::array& found, const mx::array& expected) {
  const auto squares = [](const mx::array& x) { return mx::sum(mx::square(x)); };
  const mx::array apart = mx::subtract(found, expected);
  return std::sqrt(double{mx::divide(squares(apart), squares(expected)).item<float>()});
}

/// Activations in steps of 2^-15 of their group's largest, off by 0.3 steps in the mean; the
/// largest is up to four times as large as the others in the mean, and one row may be twice as far
/// off.
constexpr double kCodes = 0x1p-14;

/// Sums in float32, added up one behind the other in the reference's norms and products: errors of
/// 2^-24 of the sum go forth and back.
double floats(int width) {
  return 0x1p-24 * std::sqrt(static_cast<double>(width));
}

/// Activations of many rows rounded to bfloat16.
constexpr double kBf16 = 0x1p-9;

class RealWidths : public testing::TestWithParam<cpu::Isa> {
 protected:
  void SetUp() override {
    mx::random::seed(11);
    if (backend_name() != "cpu") {
      GTEST_SKIP() << "on a GPU";
    }
  }

  struct Both {
    PackedMatrixPtr cpu;
    PackedMatrixPtr reference;
  };

  /// Codes in groups of 64, or bfloat16 where there are 0 bits.
  Both both(const mx::Shape& shape, int bits) const {
    const float scale = 1.0F / std::sqrt(static_cast<float>(shape.back()));
    const mx::array weight = mx::astype(
        mx::multiply(mx::random::normal(shape), scalar(scale, mx::float32)), mx::bfloat16
    );
    Matrix matrix{weight};
    if (bits != 0) {
      const std::vector<mx::array> parts = mx::quantize(weight, 64, bits);
      matrix = {parts[0], parts[1], parts[2], Quantization{bits, 64}};
    }
    return {cpu_->pack(matrix), reference_->pack(matrix)};
  }

  RmsNorm norm(int width) const {
    return {cpu_->pack_vector(mx::random::uniform(0.5F, 1.5F, {width})), 1e-6F};
  }

  /// Few rows are an answer's, many a prompt's.
  static Activations served(const mx::array& x) {
    return x.shape(0) < 32 ? decode_rows(x) : prefill_rows(x);
  }

  double limit(int bits, const Activations& x, int width) const {
    const cpu::Kernels& kernels = cpu::kernels_for(GetParam());
    const bool can_round =
        bits == 0 ? kernels.bf16_product != nullptr : kernels.codes_bf16_product != nullptr;
    if (can_round && x.prefill > 0) {
      return kBf16;
    }
    return bits == 0 ? floats(width) : kCodes;
  }

  std::unique_ptr<const Ops> cpu_ = cpu::make_cpu_ops(GetParam(), 2);
  std::unique_ptr<const Ops> reference_ = make_reference_ops(mx::float32, Arithmetic::float32);
};

TEST_P(RealWidths, decoder_products) {
  for (const int width : kDecoderWidths) {
    const RmsNorm before = norm(width);
    for (const int bits : {0, 4}) {
      const Both w = both({kOutputs, width}, bits);
      const Both up = both({kOutputs, width}, bits);
      for (const int rows : kRows) {
        SCOPED_TRACE(fmt::format("{} inputs, {} bits, {} rows", width, bits, rows));
        const Activations x = served(mx::random::normal({rows, width}));
        const mx::array residual = mx::random::normal({rows, kOutputs});
        EXPECT_LE(
            distance(
                cpu_->linear_residual(x, *w.cpu, residual),
                reference_->linear_residual(x, *w.reference, residual)
            ),
            limit(bits, x, width)
        );
        EXPECT_LE(
            distance(
                cpu_->norm_linears(x, before, {&w.cpu, 1})[0],
                reference_->norm_linears(x, before, {&w.reference, 1})[0]
            ),
            limit(bits, x, width)
        );
        // Both factors are off.
        EXPECT_LE(
            distance(
                cpu_->norm_swiglu(x, before, *w.cpu, *up.cpu),
                reference_->norm_swiglu(x, before, *w.reference, *up.reference)
            ),
            2 * limit(bits, x, width)
        );
      }
    }
  }
}

TEST_P(RealWidths, tower_products) {
  for (const int width : kTowerWidths) {
    const LayerNorm before = {
        cpu_->pack_vector(mx::random::uniform(0.5F, 1.5F, {width})),
        cpu_->pack_vector(mx::random::normal({width})),
        1e-6F
    };
    const Both w = both({kOutputs, width}, 0);
    for (const int rows : kRows) {
      SCOPED_TRACE(fmt::format("{} inputs, {} rows", width, rows));
      const Activations x = served(mx::random::normal({rows, width}));
      EXPECT_LE(
          distance(
              cpu_->norm_linears(x, before, {&w.cpu, 1})[0],
              reference_->norm_linears(x, before, {&w.reference, 1})[0]
          ),
          limit(0, x, width)
      );
      for (const Gelu gelu : {Gelu::erf, Gelu::tanh, Gelu::quick}) {
        EXPECT_LE(
            distance(
                cpu_->linear_gelu(x, *w.cpu, gelu), reference_->linear_gelu(x, *w.reference, gelu)
            ),
            2 * limit(0, x, width)
        );
      }
    }
  }
}

TEST_P(RealWidths, embedding) {
  const mx::array ids = mx::array({0, 69, 3, 3, 16}, mx::int32);
  for (const int width : {1536, 2048, 2560, 3584}) {
    for (const int bits : {0, 4}) {
      const Both table = both({70, width}, bits);
      EXPECT_LE(
          distance(cpu_->embed(*table.cpu, ids), reference_->embed(*table.reference, ids)), 1e-7
      );
    }
  }
}

/// 8 experts as wide as 30B-A3B's, of a few of their 768 inner columns.
TEST_P(RealWidths, experts) {
  constexpr int kExperts = 32;
  constexpr int kWidth = 2048;
  constexpr int kInner = 64;
  const Both router = both({kExperts, kWidth}, 8);
  const Both gate = both({kExperts, kInner, kWidth}, 4);
  const Both up = both({kExperts, kInner, kWidth}, 4);
  const Both down = both({kExperts, kWidth, kInner}, 4);
  const RmsNorm before = norm(kWidth);
  for (const int rows : kRows) {
    const mx::array x = mx::random::normal({rows, kWidth});
    EXPECT_LE(
        distance(
            mx::subtract(
                cpu_->experts_residual(
                    x, before, {router.cpu, gate.cpu, up.cpu, down.cpu, 8, true}
                ),
                x
            ),
            mx::subtract(
                reference_->experts_residual(
                    x,
                    before,
                    {router.reference, gate.reference, up.reference, down.reference, 8, true}
                ),
                x
            )
        ),
        2 * kCodes
    ) << rows;
  }
}

constexpr int kCapacity = 256;

/// A cache of bfloat16 for both, so that both round keys and values alike.
KVBuffer empty_cache(int kv_heads, int head_dim, int bits) {
  const KVFormat format = kv_format(bits, mx::bfloat16, head_dim);
  const auto rows = [&]() -> KVRows {
    if (bits == 0) {
      return {mx::zeros({1, kv_heads, kCapacity, head_dim}, mx::bfloat16)};
    }
    const mx::Shape groups = {1, kv_heads, kCapacity, head_dim / format.group_size};
    return {
        mx::zeros({1, kv_heads, kCapacity, head_dim / 4}, mx::uint32),
        mx::zeros(groups, mx::bfloat16),
        mx::zeros(groups, mx::bfloat16)
    };
  };
  return {rows(), rows(), format};
}

struct AttentionCase {
  HeadShape shape;
  Qkv qkv;  // of all rows
  RopeTables tables;
  std::optional<HeadNorms> norms;
};

/// Rows `first` to `end` behind those in the cache.
mx::array attend(const Ops& ops, const AttentionCase& given, KVBuffer& cache, int first, int end) {
  const auto rows = [first, end](const mx::array& x) {
    const mx::Shape start = {first, 0};
    const mx::Shape stop = {end, x.shape(1)};
    return mx::contiguous(mx::slice(x, start, stop));
  };
  const RopePlan rope{
      mx::ones({given.shape.head_dim / 2}),
      first,
      RopeTables{rows(given.tables.cos), rows(given.tables.sin)}
  };
  const AttentionRows sequence{0, end - first, rope, cache, first, first == 0};
  const Qkv qkv{rows(given.qkv.q), rows(given.qkv.k), rows(given.qkv.v)};
  AttentionResult result = ops.attention(qkv, given.shape, given.norms, {&sequence, 1});
  cache = std::move(result.caches[0]);
  mx::eval({result.output, cache.keys.data, cache.values.data});
  return result.output;
}

/// Keys that round otherwise in the two backends differ by a unit of bfloat16, few do; scores on
/// tiles are products of bfloat16.
constexpr double kAttention = 1e-3;
constexpr double kAttentionOnTiles = 8e-3;

TEST_P(RealWidths, attention_of_each_head_size_and_group) {
  constexpr int kKvHeads = 2;
  for (const int head_dim : {64, 72, 80, 128}) {
    for (const int group : {1, 2, 4, 6, 7, 8}) {
      const int heads = kKvHeads * group;
      constexpr int kAll = 150;
      const mx::array angles = mx::random::normal({kAll, head_dim / 2});
      const AttentionCase given{
          {heads, kKvHeads, head_dim},
          {mx::random::normal({kAll, heads * head_dim}),
           mx::random::normal({kAll, kKvHeads * head_dim}),
           mx::random::normal({kAll, kKvHeads * head_dim})},
          {mx::cos(angles), mx::sin(angles)},
          group % 4 == 0 ? std::optional(HeadNorms{norm(head_dim), norm(head_dim)}) : std::nullopt
      };
      KVBuffer ours = empty_cache(kKvHeads, head_dim, 0);
      KVBuffer theirs = empty_cache(kKvHeads, head_dim, 0);
      for (const auto& [first, end] : {std::pair{0, 140}, {140, 147}, {147, 148}, {148, 150}}) {
        SCOPED_TRACE(
            fmt::format("heads of {}, groups of {}, rows {} to {}", head_dim, group, first, end)
        );
        EXPECT_LE(
            distance(
                attend(*cpu_, given, ours, first, end),
                attend(*reference_, given, theirs, first, end)
            ),
            GetParam() == cpu::Isa::amx && first == 0 ? kAttentionOnTiles : kAttention
        );
      }
    }
  }
}

TEST_P(RealWidths, attention_of_towers) {
  constexpr int kRowsOfAll = 200;
  for (const int head_dim : {64, 72, 80}) {
    const int width = 16 * head_dim;
    const mx::array qkv = mx::random::normal({kRowsOfAll, 3 * width});
    const mx::array angles = mx::random::normal({kRowsOfAll, head_dim / 2});
    const RopeTables tables{mx::cos(angles), mx::sin(angles)};
    for (const std::vector<int>& borders :
         {std::vector{0, kRowsOfAll}, std::vector{0, 64, 128, 144, kRowsOfAll}}) {
      EXPECT_LE(
          distance(
              cpu_->segment_attention(qkv, 16, tables, borders, {0, kRowsOfAll}),
              reference_->segment_attention(qkv, 16, tables, borders, {0, kRowsOfAll})
          ),
          GetParam() == cpu::Isa::amx ? kAttentionOnTiles : kAttention
      ) << head_dim;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Isas, RealWidths, testing::ValuesIn(cpu::available_isas()), [](const auto& isa) {
      return std::string(cpu::isa_name(isa.param));
    }
);

}  // namespace
}  // namespace whimbrel::ops
