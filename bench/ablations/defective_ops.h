#pragma once

#include <vector>

#include "ablations/defect.h"
#include "ops/ops.h"

namespace whimbrel::ablations {

namespace mx = ops::mx;

/// Hands every operation on to a backend; at a decode step (one row of one sequence) the attention
/// gets one defect, made of stock MLX operations around the backend's own. Nothing else changes, so
/// the difference between two steps is the defect's cost.
class DefectiveOps : public ops::Ops {
 public:
  explicit DefectiveOps(const ops::Ops& inner) : inner_(inner) {}

  /// Takes effect on graphs that are built from now on; the ones before must have run.
  void apply(Defect defect);

  std::string_view name() const override { return inner_.name(); }
  mx::Dtype dtype() const override { return inner_.dtype(); }
  mx::Dtype rounding() const override { return inner_.rounding(); }
  mx::Dtype kv_dtype() const override { return inner_.kv_dtype(); }
  bool rotates_by_tables() const override { return inner_.rotates_by_tables(); }
  uint64_t weight_bytes(const ops::StoredWeights& stored) const override {
    return inner_.weight_bytes(stored);
  }
  uint64_t layer_bytes(const ops::LayerRows& layer) const override {
    return inner_.layer_bytes(layer);
  }
  uint64_t own_bytes() const override { return inner_.own_bytes(); }
  ops::PackedMatrixPtr pack(ops::Matrix matrix) const override;
  mx::array pack_vector(const mx::array& vector) const override;
  mx::array embed(const ops::PackedMatrix& table, const mx::array& ids) const override;
  mx::array linear(const ops::Activations& x, const ops::PackedMatrix& w) const override;
  mx::array linear_residual(
      const ops::Activations& x, const ops::PackedMatrix& w, const mx::array& residual
  ) const override;
  mx::array linear_gelu(
      const ops::Activations& x, const ops::PackedMatrix& w, ops::Gelu gelu
  ) const override;
  mx::array norm(const mx::array& x, const ops::Norm& norm) const override;
  std::vector<mx::array> norm_linears(
      const ops::Activations& x, const ops::Norm& norm, std::span<const ops::PackedMatrixPtr> ws
  ) const override;
  mx::array norm_swiglu(
      const ops::Activations& x,
      const ops::RmsNorm& norm,
      const ops::PackedMatrix& gate,
      const ops::PackedMatrix& up
  ) const override;
  mx::array experts_residual(
      const mx::array& x, const ops::RmsNorm& norm, const ops::Experts& experts
  ) const override;
  ops::AttentionResult attention(
      const ops::Qkv& qkv,
      const ops::HeadShape& shape,
      const std::optional<ops::HeadNorms>& norms,
      std::span<const ops::AttentionRows> sequences
  ) const override;
  mx::array segment_attention(
      const mx::array& qkv,
      int heads,
      const ops::RopeTables& rope,
      std::span<const int> cu_seqlens,
      const ops::RowRange& queries
  ) const override;

 private:
  const ops::Ops& inner_;
  Defect defect_ = Defect::none;
  /// Buffers that a step in flight would hold, so that no write goes in place.
  mutable std::vector<mx::array> held_;
};

/// The cache as `float32_cache` wants it: numbers float32, the format still what the backend takes.
ops::KVBuffer widened(const ops::KVBuffer& cache);

}  // namespace whimbrel::ablations
