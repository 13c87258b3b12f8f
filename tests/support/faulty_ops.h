#pragma once

#include <memory>
#include <new>
#include <utility>

#include "ops/ops.h"

namespace whimbrel::test {

/// The operations of another backend, one of which fails where a test wants it.
class FaultyOps : public ops::Ops {
 public:
  explicit FaultyOps(std::unique_ptr<const ops::Ops> real) : real_(std::move(real)) {}

  /// The operation behind the next `count` ones fails, once; -1: none.
  void fail_behind(int count) const { left_ = count; }

  /// Whether it is still to come.
  bool is_armed() const { return left_ >= 0; }

  std::string_view name() const override { return real_->name(); }
  ops::mx::Dtype dtype() const override { return real_->dtype(); }
  ops::mx::Dtype rounding() const override { return real_->rounding(); }
  ops::mx::Dtype kv_dtype() const override { return real_->kv_dtype(); }
  bool rotates_by_tables() const override { return real_->rotates_by_tables(); }
  uint64_t weight_bytes(const ops::StoredWeights& stored) const override {
    return real_->weight_bytes(stored);
  }
  uint64_t layer_bytes(const ops::LayerRows& layer) const override {
    return real_->layer_bytes(layer);
  }
  uint64_t own_bytes() const override { return real_->own_bytes(); }

  ops::PackedMatrixPtr pack(ops::Matrix matrix) const override {
    return real_->pack(std::move(matrix));
  }
  ops::mx::array pack_vector(const ops::mx::array& vector) const override {
    return real_->pack_vector(vector);
  }

  ops::mx::array embed(const ops::PackedMatrix& table, const ops::mx::array& ids) const override {
    return counted().embed(table, ids);
  }
  ops::mx::array linear(const ops::Activations& x, const ops::PackedMatrix& w) const override {
    return counted().linear(x, w);
  }
  ops::mx::array linear_residual(
      const ops::Activations& x, const ops::PackedMatrix& w, const ops::mx::array& residual
  ) const override {
    return counted().linear_residual(x, w, residual);
  }
  ops::mx::array linear_gelu(
      const ops::Activations& x, const ops::PackedMatrix& w, ops::Gelu gelu
  ) const override {
    return counted().linear_gelu(x, w, gelu);
  }
  ops::mx::array norm(const ops::mx::array& x, const ops::Norm& norm) const override {
    return counted().norm(x, norm);
  }
  std::vector<ops::mx::array> norm_linears(
      const ops::Activations& x, const ops::Norm& norm, std::span<const ops::PackedMatrixPtr> ws
  ) const override {
    return counted().norm_linears(x, norm, ws);
  }
  ops::mx::array norm_swiglu(
      const ops::Activations& x,
      const ops::RmsNorm& norm,
      const ops::PackedMatrix& gate,
      const ops::PackedMatrix& up
  ) const override {
    return counted().norm_swiglu(x, norm, gate, up);
  }
  ops::mx::array experts_residual(
      const ops::mx::array& x, const ops::RmsNorm& norm, const ops::Experts& experts
  ) const override {
    return counted().experts_residual(x, norm, experts);
  }
  ops::AttentionResult attention(
      const ops::Qkv& qkv,
      const ops::HeadShape& shape,
      const std::optional<ops::HeadNorms>& norms,
      std::span<const ops::AttentionRows> sequences
  ) const override {
    return counted().attention(qkv, shape, norms, sequences);
  }
  ops::AttentionResult attention_residual(
      const ops::mx::array& x,
      const ops::AttentionWeights& weights,
      const ops::HeadShape& shape,
      std::span<const ops::AttentionRows> sequences
  ) const override {
    return counted().attention_residual(x, weights, shape, sequences);
  }
  ops::mx::array swiglu_residual(
      const ops::Activations& x,
      const ops::RmsNorm& norm,
      const ops::PackedMatrix& gate,
      const ops::PackedMatrix& up,
      const ops::PackedMatrix& down
  ) const override {
    return counted().swiglu_residual(x, norm, gate, up, down);
  }
  ops::mx::array peaks(const ops::mx::array& logits) const override {
    return counted().peaks(logits);
  }
  ops::mx::array segment_attention(
      const ops::mx::array& qkv,
      int heads,
      const ops::RopeTables& rope,
      std::span<const int> cu_seqlens,
      const ops::RowRange& queries
  ) const override {
    return counted().segment_attention(qkv, heads, rope, cu_seqlens, queries);
  }

 private:
  const ops::Ops& counted() const {
    if (left_ >= 0 && left_-- == 0) {
      throw std::bad_alloc();
    }
    return *real_;
  }

  std::unique_ptr<const ops::Ops> real_;
  mutable int left_ = -1;
};

}  // namespace whimbrel::test
