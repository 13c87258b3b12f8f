#include "ops/ops.h"

#include <mlx/mlx.h>

#include <limits>

namespace whimbrel::ops {

Activations prefill_rows(const mx::array& rows) {
  return {rows, rows.shape(0)};
}

Activations decode_rows(const mx::array& rows) {
  return {rows, 0};
}

int prefill_rows(std::span<const AttentionRows> sequences) {
  int rows = 0;
  for (const AttentionRows& sequence : sequences) {
    rows += sequence.prefill ? sequence.count : 0;
  }
  return rows;
}

AttentionResult Ops::attention_residual(
    const mx::array& x,
    const AttentionWeights& weights,
    const HeadShape& shape,
    std::span<const AttentionRows> sequences
) const {
  const int prefill = prefill_rows(sequences);
  const std::vector<mx::array> qkv = norm_linears({x, prefill}, weights.norm, weights.qkv_proj);
  AttentionResult result =
      attention({qkv[0], qkv[1], qkv[2]}, shape, weights.head_norms, sequences);
  return {linear_residual({result.output, prefill}, *weights.o_proj, x), std::move(result.caches)};
}

mx::array Ops::swiglu_residual(
    const Activations& x,
    const RmsNorm& norm,
    const PackedMatrix& gate,
    const PackedMatrix& up,
    const PackedMatrix& down
) const {
  return linear_residual({norm_swiglu(x, norm, gate, up), x.prefill}, down, x.rows);
}

mx::array Ops::peaks(const mx::array& logits) const {
  const int rows = logits.shape(0);
  const int runs = (logits.shape(1) + kPeakRun - 1) / kPeakRun;
  const mx::array x = mx::astype(logits, mx::float32);
  const mx::array nan = scalar(std::numeric_limits<float>::quiet_NaN(), mx::float32);
  const mx::array lowest = scalar(-std::numeric_limits<float>::infinity(), mx::float32);
  const mx::array padded = mx::pad(
      mx::where(mx::isfinite(x), x, nan), {{0, 0}, {0, runs * kPeakRun - x.shape(1)}}, lowest
  );
  return mx::max(mx::reshape(padded, {rows, runs, kPeakRun}), -1);
}

int64_t Ops::pairs_of_a_pause() const {
  return int64_t{1} << 30;
}

}  // namespace whimbrel::ops
