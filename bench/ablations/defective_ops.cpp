#include "ablations/defective_ops.h"

#include <mlx/mlx.h>

#include <limits>

#include "ablations/append_rows.h"

namespace whimbrel::ablations {

namespace {

/// What the backend's attention is called with: one row of one sequence.
struct Call {
  ops::Qkv qkv;
  ops::HeadShape shape;
  std::optional<ops::HeadNorms> norms;
  ops::RopePlan rope;
  ops::KVBuffer cache;
  int cached;
};

struct CallResult {
  mx::array output;
  ops::KVBuffer cache;
};

CallResult hand_on(const ops::Ops& inner, const Call& call) {
  const ops::AttentionRows rows{0, 1, call.rope, call.cache, call.cached, false};
  ops::AttentionResult result = inner.attention(call.qkv, call.shape, call.norms, {&rows, 1});
  return {result.output, std::move(result.caches.front())};
}

/// Rows [first, end) of a buffer, of every `step`-th head.
mx::array rows_of(const mx::array& buffer, int first, int end, int step = 1) {
  const mx::Shape start = {0, 0, first, 0};
  mx::Shape stop = buffer.shape();
  stop[2] = end;
  const mx::Shape strides = {1, step, 1, 1};
  return mx::slice(buffer, start, stop, strides);
}

/// Appends what the backend wrote into a stand-in's rows from `cached` on to the cache itself, one
/// of every `group` heads.
ops::KVBuffer append_written(const Call& call, const ops::KVBuffer& written, int group) {
  const auto append = [&](const ops::KVRows& cache, const ops::KVRows& rows) {
    const mx::array fresh = rows_of(rows.data, call.cached, call.cached + 1, group);
    return ops::KVRows{append_rows(cache.data, mx::astype(fresh, cache.data.dtype()), call.cached)};
  };
  return {
      append(call.cache.keys, written.keys),
      append(call.cache.values, written.values),
      call.cache.format
  };
}

// ---- the defects

/// Attention over copies with as many key and value heads as there are query heads.
CallResult with_repeated_heads(const ops::Ops& inner, const Call& call) {
  const int group = call.shape.heads / call.shape.kv_heads;
  const auto repeated = [&](const mx::array& x) {
    const mx::array heads = mx::reshape(x, {x.shape(0), call.shape.kv_heads, call.shape.head_dim});
    return mx::reshape(mx::repeat(heads, group, 1), {x.shape(0), -1});
  };
  const auto copies = [&](const ops::KVRows& rows) {
    return ops::KVRows{mx::repeat(rows_of(rows.data, 0, call.cached + 1), group, 1)};
  };
  Call wide = call;
  wide.qkv.k = repeated(call.qkv.k);
  wide.qkv.v = repeated(call.qkv.v);
  wide.shape.kv_heads = call.shape.heads;
  wide.cache.keys = copies(call.cache.keys);
  wide.cache.values = copies(call.cache.values);
  const CallResult result = hand_on(inner, wide);
  return {result.output, append_written(call, result.cache, group)};
}

/// No operation takes a mask, so what is built here hides nothing and is added to the output as the
/// sum of its zeros, once read for each query head.
CallResult with_mask(const ops::Ops& inner, const Call& call) {
  const mx::array visible = mx::less_equal(mx::arange(call.cached + 1), mx::array(call.cached));
  const mx::array hidden = ops::scalar(-std::numeric_limits<float>::infinity(), mx::float32);
  const mx::array mask = mx::where(visible, ops::scalar(0, mx::float32), hidden);
  const mx::array of_heads = mx::broadcast_to(mask, {call.shape.heads, call.cached + 1});
  const mx::array zero = mx::sum(of_heads);
  CallResult result = hand_on(inner, call);
  result.output = mx::add(result.output, mx::astype(zero, result.output.dtype()));
  return result;
}

CallResult with_rope_tables(const ops::Ops& inner, const Call& call) {
  const mx::array position = mx::array(call.rope.offset, mx::float32);
  const mx::array angles = mx::expand_dims(mx::divide(position, call.rope.periods), 0);
  Call changed = call;
  changed.rope.tables = ops::RopeTables{mx::cos(angles), mx::sin(angles)};
  return hand_on(inner, changed);
}

/// The cache's numbers are float32 (widened) and are rounded for the backend at each step.
CallResult with_float32_cache(const ops::Ops& inner, const Call& call) {
  const auto rounded = [&](const ops::KVRows& rows) {
    return ops::KVRows{mx::astype(rows_of(rows.data, 0, call.cached + 1), call.cache.format.dtype)};
  };
  Call narrow = call;
  narrow.cache.keys = rounded(call.cache.keys);
  narrow.cache.values = rounded(call.cache.values);
  const CallResult result = hand_on(inner, narrow);
  return {result.output, append_written(call, result.cache, 1)};
}

/// A backend writes into a buffer in place only if nothing else holds it.
CallResult with_copied_cache(
    const ops::Ops& inner, const Call& call, std::vector<mx::array>& held
) {
  held.push_back(call.cache.keys.data);
  held.push_back(call.cache.values.data);
  return hand_on(inner, call);
}

CallResult with_defect(
    Defect defect, const ops::Ops& inner, const Call& call, std::vector<mx::array>& held
) {
  switch (defect) {
    case Defect::none:
      break;
    case Defect::repeated_heads:
      return with_repeated_heads(inner, call);
    case Defect::mask_at_one_row:
      return with_mask(inner, call);
    case Defect::rope_tables_each_layer:
      return with_rope_tables(inner, call);
    case Defect::float32_cache:
      return with_float32_cache(inner, call);
    case Defect::copied_cache:
      return with_copied_cache(inner, call, held);
  }
  return hand_on(inner, call);
}

}  // namespace

void DefectiveOps::apply(Defect defect) {
  defect_ = defect;
  held_.clear();
}

ops::AttentionResult DefectiveOps::attention(
    const ops::Qkv& qkv,
    const ops::HeadShape& shape,
    const std::optional<ops::HeadNorms>& norms,
    std::span<const ops::AttentionRows> sequences
) const {
  const ops::AttentionRows& rows = sequences.front();
  if (defect_ == Defect::none || sequences.size() != 1 || rows.count != 1) {
    return inner_.attention(qkv, shape, norms, sequences);
  }
  const Call call{qkv, shape, norms, rows.rope, rows.cache, rows.cached};
  CallResult result = with_defect(defect_, inner_, call, held_);
  return {result.output, {std::move(result.cache)}};
}

ops::KVBuffer widened(const ops::KVBuffer& cache) {
  ops::KVBuffer wide = cache;
  wide.keys.data = mx::astype(cache.keys.data, mx::float32);
  wide.values.data = mx::astype(cache.values.data, mx::float32);
  return wide;
}

// ---- handed on as they are

ops::PackedMatrixPtr DefectiveOps::pack(ops::Matrix matrix) const {
  return inner_.pack(std::move(matrix));
}

mx::array DefectiveOps::pack_vector(const mx::array& vector) const {
  return inner_.pack_vector(vector);
}

mx::array DefectiveOps::embed(const ops::PackedMatrix& table, const mx::array& ids) const {
  return inner_.embed(table, ids);
}

mx::array DefectiveOps::linear(const ops::Activations& x, const ops::PackedMatrix& w) const {
  return inner_.linear(x, w);
}

mx::array DefectiveOps::linear_residual(
    const ops::Activations& x, const ops::PackedMatrix& w, const mx::array& residual
) const {
  return inner_.linear_residual(x, w, residual);
}

mx::array DefectiveOps::linear_gelu(
    const ops::Activations& x, const ops::PackedMatrix& w, ops::Gelu gelu
) const {
  return inner_.linear_gelu(x, w, gelu);
}

mx::array DefectiveOps::norm(const mx::array& x, const ops::Norm& norm) const {
  return inner_.norm(x, norm);
}

std::vector<mx::array> DefectiveOps::norm_linears(
    const ops::Activations& x, const ops::Norm& norm, std::span<const ops::PackedMatrixPtr> ws
) const {
  return inner_.norm_linears(x, norm, ws);
}

mx::array DefectiveOps::norm_swiglu(
    const ops::Activations& x,
    const ops::RmsNorm& norm,
    const ops::PackedMatrix& gate,
    const ops::PackedMatrix& up
) const {
  return inner_.norm_swiglu(x, norm, gate, up);
}

mx::array DefectiveOps::experts_residual(
    const mx::array& x, const ops::RmsNorm& norm, const ops::Experts& experts
) const {
  return inner_.experts_residual(x, norm, experts);
}

mx::array DefectiveOps::segment_attention(
    const mx::array& qkv,
    int heads,
    const ops::RopeTables& rope,
    std::span<const int> cu_seqlens,
    const ops::RowRange& queries
) const {
  return inner_.segment_attention(qkv, heads, rope, cu_seqlens, queries);
}

}  // namespace whimbrel::ablations
