// Each operation of the CPU backend against the reference made of stock MLX operations.

#include "ops/cpu/cpu_ops.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ops/cpu/kernels.h"
#include "ops/device.h"
#include "ops/graph.h"
#include "ops/ops.h"

namespace whimbrel::ops {
namespace {

/// How far a result may lie from the reference, as a share of the largest value. Weights in
/// bfloat16, and on tiles codes too, meet rows of prompts that are rounded to bfloat16.
constexpr float kExact = 1.5e-4F;
constexpr float kRoundedToBf16 = 8e-3F;

float distance(const mx::array& found, const mx::array& expected) {
  const mx::array difference = mx::max(mx::abs(mx::subtract(found, expected)));
  const mx::array size = mx::max(mx::abs(expected));
  return mx::divide(difference, size).item<float>();
}

/// Rows of answers, of prompts, and of both.
std::array<Activations, 3> each_kind(const mx::array& x) {
  return {decode_rows(x), prefill_rows(x), Activations{x, x.shape(0) / 2}};
}

mx::array rows_of(const mx::array& x, int first, int end) {
  return mx::slice(x, mx::Shape{first, 0}, mx::Shape{end, x.shape(1)});
}

/// How a matrix is stored.
struct Form {
  int bits;  // 0: plain
  int group_size;
  mx::Dtype dtype;  // of plain numbers, scales and offsets

  friend std::ostream& operator<<(std::ostream& out, const Form& form) {
    return out << form.bits << " bits, groups of " << form.group_size;
  }
};

Matrix stored(const mx::array& weight, const Form& form) {
  const mx::array plain = mx::astype(weight, form.dtype);
  if (form.bits == 0) {
    return {plain};
  }
  const std::vector<mx::array> parts = mx::quantize(plain, form.group_size, form.bits);
  return {parts[0], parts[1], parts[2], Quantization{form.bits, form.group_size}};
}

Matrix random_matrix(const mx::Shape& shape, const Form& form, bool bias = false) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(shape.back()));
  Matrix matrix = stored(mx::multiply(mx::random::normal(shape), scalar(scale, mx::float32)), form);
  if (bias) {
    matrix.bias = mx::astype(mx::random::normal({shape[shape.size() - 2]}), form.dtype);
  }
  return matrix;
}

class CpuOps : public testing::TestWithParam<Form> {
 protected:
  void SetUp() override {
    mx::random::seed(5);
    if (backend_name() != "cpu") {
      GTEST_SKIP() << "on a GPU";
    }
  }

  /// One matrix in both backends' forms.
  struct Both {
    PackedMatrixPtr cpu;
    PackedMatrixPtr reference;
  };

  Both both(const mx::Shape& shape, bool bias = false) const {
    const Matrix matrix = random_matrix(shape, GetParam(), bias);
    return {cpu_->pack(matrix), reference_->pack(matrix)};
  }

  float limit(const Activations& x) const {
    const cpu::Kernels& kernels = cpu::kernels_for(cpu::available_isas().back());
    const bool rounds = GetParam().bits == 0 ? GetParam().dtype == mx::bfloat16
                                             : kernels.codes_bf16_product != nullptr;
    return rounds && x.prefill > 0 ? kRoundedToBf16 : kExact;
  }

  std::unique_ptr<const Ops> cpu_ = cpu::make_cpu_ops(cpu::available_isas().back(), 2);
  std::unique_ptr<const Ops> reference_ = make_reference_ops(mx::float32, Arithmetic::float32);
};

constexpr int kWidth = 384;
constexpr int kRows[] = {1, 2, 5, 8, 33, 300};

TEST_P(CpuOps, embed) {
  const Both table = both({70, kWidth});
  const mx::array ids = mx::array({0, 69, 3, 3, 16}, mx::int32);
  EXPECT_LT(
      distance(cpu_->embed(*table.cpu, ids), reference_->embed(*table.reference, ids)), 1e-6F
  );
}

TEST_P(CpuOps, linear) {
  for (const bool bias : {false, true}) {
    const Both w = both({90, kWidth}, bias);
    for (const int rows : kRows) {
      const mx::array x = mx::random::normal({rows, kWidth});
      const mx::array residual = mx::random::normal({rows, 90});
      for (const Activations& kind : each_kind(x)) {
        SCOPED_TRACE(std::to_string(kind.prefill) + " of " + std::to_string(rows) + " rows");
        EXPECT_LT(
            distance(cpu_->linear(kind, *w.cpu), reference_->linear(kind, *w.reference)),
            limit(kind)
        );
        EXPECT_LT(
            distance(
                cpu_->linear_residual(kind, *w.cpu, residual),
                reference_->linear_residual(kind, *w.reference, residual)
            ),
            limit(kind)
        );
        for (const Gelu gelu : {Gelu::erf, Gelu::tanh, Gelu::quick}) {
          EXPECT_LT(
              distance(
                  cpu_->linear_gelu(kind, *w.cpu, gelu),
                  reference_->linear_gelu(kind, *w.reference, gelu)
              ),
              limit(kind)
          );
        }
      }
    }
  }
}

TEST_P(CpuOps, norm_linears) {
  const std::vector<Both> ws = {both({96, kWidth}, true), both({32, kWidth}), both({7, kWidth})};
  std::vector<PackedMatrixPtr> cpu;
  std::vector<PackedMatrixPtr> reference;
  for (const Both& w : ws) {
    cpu.push_back(w.cpu);
    reference.push_back(w.reference);
  }
  const mx::array weight = cpu_->pack_vector(mx::random::normal({kWidth}));
  const mx::array bias = cpu_->pack_vector(mx::random::normal({kWidth}));
  for (const Norm& norm : {Norm(RmsNorm{weight, 1e-6F}), Norm(LayerNorm{weight, bias, 1e-6F})}) {
    for (const int rows : kRows) {
      const mx::array x = mx::random::normal({rows, kWidth});
      for (const Activations& kind : each_kind(x)) {
        const std::vector<mx::array> found = cpu_->norm_linears(kind, norm, cpu);
        const std::vector<mx::array> expected = reference_->norm_linears(kind, norm, reference);
        for (size_t i = 0; i < ws.size(); ++i) {
          EXPECT_LT(distance(found[i], expected[i]), limit(kind))
              << kind.prefill << " of " << rows << " rows, matrix " << i;
        }
      }
      EXPECT_LT(distance(cpu_->norm(x, norm), reference_->norm(x, norm)), 1e-5F);
    }
  }
}

TEST_P(CpuOps, norm_swiglu) {
  for (const bool bias : {false, true}) {
    const Both gate = both({100, kWidth}, bias);
    const Both up = both({100, kWidth}, bias);
    const RmsNorm norm{cpu_->pack_vector(mx::random::normal({kWidth})), 1e-6F};
    for (const int rows : kRows) {
      const mx::array x = mx::random::normal({rows, kWidth});
      for (const Activations& kind : each_kind(x)) {
        EXPECT_LT(
            distance(
                cpu_->norm_swiglu(kind, norm, *gate.cpu, *up.cpu),
                reference_->norm_swiglu(kind, norm, *gate.reference, *up.reference)
            ),
            limit(kind)
        ) << kind.prefill
          << " of " << rows << " rows";
      }
    }
  }
}

TEST_P(CpuOps, experts_residual) {
  constexpr int kExperts = 6;
  const Both router = both({kExperts, kWidth});
  const Both gate = both({kExperts, 128, kWidth});
  const Both up = both({kExperts, 128, kWidth});
  const Both down = both({kExperts, kWidth, 128});
  const RmsNorm norm{cpu_->pack_vector(mx::random::normal({kWidth})), 1e-6F};
  for (const bool renormalized : {false, true}) {
    const Experts cpu{router.cpu, gate.cpu, up.cpu, down.cpu, 2, renormalized};
    const Experts reference{
        router.reference, gate.reference, up.reference, down.reference, 2, renormalized
    };
    for (const int rows : kRows) {
      const mx::array x = mx::random::normal({rows, kWidth});
      EXPECT_LT(
          distance(
              cpu_->experts_residual(x, norm, cpu), reference_->experts_residual(x, norm, reference)
          ),
          kExact
      ) << rows;
    }
  }
}

TEST_P(CpuOps, a_row_is_the_same_alone_and_among_others) {
  const Both w = both({90, kWidth}, true);
  const mx::array x = mx::random::normal({8, kWidth});
  for (const auto& kind : {decode_rows, prefill_rows}) {
    const mx::array together = cpu_->linear(kind(x), *w.cpu);
    for (int row = 0; row < 8; ++row) {
      const mx::array alone = cpu_->linear(kind(rows_of(x, row, row + 1)), *w.cpu);
      EXPECT_TRUE(mx::array_equal(alone, rows_of(together, row, row + 1)).item<bool>());
    }
  }
}

TEST_P(CpuOps, rows_of_prompts_and_of_answers_are_the_same_beside_each_other) {
  const Both w = both({kWidth, kWidth}, true);
  const Both up = both({kWidth, kWidth});
  const RmsNorm norm{cpu_->pack_vector(mx::random::normal({kWidth})), 1e-6F};
  for (const auto& [rows, prefill] : {std::pair{9, 5}, {40, 39}, {77, 3}, {560, 520}}) {
    SCOPED_TRACE(std::to_string(prefill) + " of " + std::to_string(rows) + " rows");
    const mx::array x = mx::random::normal({rows, kWidth});
    const mx::array prompt = rows_of(x, 0, prefill);
    const mx::array answer = rows_of(x, prefill, rows);
    const auto expect_parts = [&](const auto& operation) {
      const mx::array together = operation(Activations{x, prefill});
      const mx::array parts =
          mx::concatenate({operation(prefill_rows(prompt)), operation(decode_rows(answer))}, 0);
      EXPECT_TRUE(mx::array_equal(together, parts).item<bool>());
    };
    expect_parts([&](const Activations& a) { return cpu_->linear_residual(a, *w.cpu, a.rows); });
    expect_parts([&](const Activations& a) { return cpu_->linear_gelu(a, *w.cpu, Gelu::erf); });
    expect_parts([&](const Activations& a) { return cpu_->norm_linears(a, norm, {&w.cpu, 1})[0]; });
    expect_parts([&](const Activations& a) {
      return cpu_->swiglu_residual(a, norm, *w.cpu, *up.cpu, *up.cpu);
    });
  }
}

TEST_P(CpuOps, many_rows_are_the_same_among_more) {
  constexpr int kFirst = 493;  // they lie elsewhere in tiles, and on both sides of a block's border
  constexpr int kCount = 37;
  const Both w = both({90, kWidth}, true);
  const mx::array x = mx::random::normal({560, kWidth});
  const mx::array among = cpu_->linear(prefill_rows(x), *w.cpu);
  const mx::array alone = cpu_->linear(prefill_rows(rows_of(x, kFirst, kFirst + kCount)), *w.cpu);
  EXPECT_TRUE(mx::array_equal(alone, rows_of(among, kFirst, kFirst + kCount)).item<bool>());
}

INSTANTIATE_TEST_SUITE_P(
    Forms,
    CpuOps,
    testing::Values(
        Form{0, 0, mx::bfloat16},
        Form{0, 0, mx::float16},
        Form{0, 0, mx::float32},
        Form{2, 32, mx::bfloat16},
        Form{3, 64, mx::bfloat16},
        Form{4, 32, mx::float16},
        Form{4, 64, mx::bfloat16},
        Form{4, 128, mx::float32},
        Form{5, 64, mx::bfloat16},
        Form{6, 128, mx::bfloat16},
        Form{8, 64, mx::bfloat16},
        Form{8, 32, mx::float16}
    )
);

}  // namespace
}  // namespace whimbrel::ops
