#pragma once

#include <stdexcept>

#include "ops/ops.h"

namespace whimbrel::test {

/// Loads and evaluates nothing: a model of any size is checked tensor by tensor, and none of its
/// weights is read. It can't compute; every operation is std::logic_error.
class LazyOps : public ops::Ops {
 public:
  std::string_view name() const override { return "lazy"; }
  ops::mx::Dtype dtype() const override { return ops::mx::bfloat16; }
  ops::mx::Dtype rounding() const override { return ops::mx::bfloat16; }
  ops::mx::Dtype kv_dtype() const override { return ops::mx::bfloat16; }
  bool rotates_by_tables() const override { return false; }
  uint64_t weight_bytes(const ops::StoredWeights& stored) const override { return stored.bytes; }
  uint64_t layer_bytes(const ops::LayerRows&) const override { return 0; }
  uint64_t own_bytes() const override { return 0; }

  ops::PackedMatrixPtr pack(ops::Matrix) const override {
    return std::make_shared<const ops::PackedMatrix>();
  }
  ops::mx::array pack_vector(const ops::mx::array& vector) const override { return vector; }

  ops::mx::array embed(const ops::PackedMatrix&, const ops::mx::array&) const override { refuse(); }
  ops::mx::array linear(const ops::Activations&, const ops::PackedMatrix&) const override {
    refuse();
  }
  ops::mx::array linear_residual(
      const ops::Activations&, const ops::PackedMatrix&, const ops::mx::array&
  ) const override {
    refuse();
  }
  ops::mx::array linear_gelu(
      const ops::Activations&, const ops::PackedMatrix&, ops::Gelu
  ) const override {
    refuse();
  }
  ops::mx::array norm(const ops::mx::array&, const ops::Norm&) const override { refuse(); }
  std::vector<ops::mx::array> norm_linears(
      const ops::Activations&, const ops::Norm&, std::span<const ops::PackedMatrixPtr>
  ) const override {
    refuse();
  }
  ops::mx::array norm_swiglu(
      const ops::Activations&,
      const ops::RmsNorm&,
      const ops::PackedMatrix&,
      const ops::PackedMatrix&
  ) const override {
    refuse();
  }
  ops::mx::array experts_residual(
      const ops::mx::array&, const ops::RmsNorm&, const ops::Experts&
  ) const override {
    refuse();
  }
  ops::AttentionResult attention(
      const ops::Qkv&,
      const ops::HeadShape&,
      const std::optional<ops::HeadNorms>&,
      std::span<const ops::AttentionRows>
  ) const override {
    refuse();
  }
  ops::mx::array segment_attention(
      const ops::mx::array&, int, const ops::RopeTables&, std::span<const int>, const ops::RowRange&
  ) const override {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("[LazyOps] has no weights"); }
};

}  // namespace whimbrel::test
