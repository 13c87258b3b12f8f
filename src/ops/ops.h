#pragma once

#include <mlx/array.h>

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ops/matrix.h"
#include "ops/memory.h"
#include "ops/row_range.h"

namespace whimbrel::ops {

namespace mx = mlx::core;

/// Who sees whom in attention. At one query row there is never anything to hide.
enum class Mask { none, causal };

/// x Phi(x) by the error function, by tanh's approximation of it, or x sigmoid(1.702 x).
enum class Gelu { erf, tanh, quick };

/// Rows [rows, width] that are about to meet weights, those of prompts and pictures in front. Only
/// these a backend may round to less than the activation dtype (Ops::rounding): which rows that are
/// is a property of the sequence, so a result does not depend on what else is in a forward.
struct Activations {
  mx::array rows;
  int prefill;  // rows of prompts and pictures
};

/// All of them rows of prompts or pictures.
Activations prefill_rows(const mx::array& rows);

/// All of them rows of answers.
Activations decode_rows(const mx::array& rows);

/// Heads of one attention layer.
struct HeadShape {
  int heads;     // query heads
  int kv_heads;  // key and value heads, shared by heads / kv_heads query heads each
  int head_dim;
};

/// Cosines and sines of the rotation angles, [rows, head_dim / 2] float32.
struct RopeTables {
  mx::array cos;
  mx::array sin;
};

/// How the rows of one sequence in a forward are rotated; made once and shared by all layers.
struct RopePlan {
  /// Periods: reciprocals of the inverse frequencies, [head_dim / 2] float32.
  mx::array periods;
  /// Position of the first row; the others follow it one by one. Not used where tables are.
  int offset;
  /// For rows whose three axes differ, that is a chunk that holds media tokens; for all rows where
  /// the backend rotates by tables only.
  std::optional<RopeTables> tables;
};

/// How cached keys and values are held.
struct KVFormat {
  mx::Dtype dtype;     // of the numbers; where bits are given, of scales and offsets
  int bits = 0;        // 0: plain; 8: affine codes
  int group_size = 0;  // of affine codes: numbers of a head that share a scale and an offset
};

/// Plain at 0 bits; at 8, affine codes in the largest groups that divide head_dim. Throws
/// Error(Fault::usage) on other numbers, and where no group divides.
KVFormat kv_format(int bits, mx::Dtype dtype, int head_dim);

/// Keys or values of one layer, [1, kv_heads, capacity, head_dim]. Affine codes: uint32
/// [..., head_dim * bits / 32], scales and offsets [..., head_dim / group_size].
struct KVRows {
  mx::array data;
  std::optional<mx::array> scales = std::nullopt;
  std::optional<mx::array> offsets = std::nullopt;
};

/// One layer's cache of keys (after rope) and values.
struct KVBuffer {
  KVRows keys;
  KVRows values;
  KVFormat format;
};

struct Qkv {
  mx::array q;  // [rows, heads * head_dim]
  mx::array k;  // [rows, kv_heads * head_dim]
  mx::array v;  // [rows, kv_heads * head_dim]
};

/// The rows of one sequence among those of a forward.
struct AttentionRows {
  int first;
  int count;
  const RopePlan& rope;
  const KVBuffer& cache;  // with room for the rows
  int cached;             // rows written before
  bool prefill;           // of a prompt (Activations)
};

/// Rows of the sequences that are prompts', which stand in front.
int prefill_rows(std::span<const AttentionRows> sequences);

struct AttentionResult {
  mx::array output;              // [rows, heads * head_dim]
  std::vector<KVBuffer> caches;  // with the new rows written; the buffers passed in are spent
};

/// What the attention of a decoder layer multiplies with.
struct AttentionWeights {
  RmsNorm norm;
  std::vector<PackedMatrixPtr> qkv_proj;  // q, k, v
  std::optional<HeadNorms> head_norms;
  PackedMatrixPtr o_proj;
};

/// Logits that lie side by side and share a peak (Ops::peaks).
constexpr int kPeakRun = 16;

/// The fused operations that a decoder layer and a vision block are made of: one contract for every
/// backend. All take and return the activation dtype; sums, norm statistics, softmax and angles are
/// float32 inside. Operations only build graph nodes, packing evaluates. Those with a body here are
/// made of others, unless a backend has a faster way to the same numbers.
class Ops {
 public:
  virtual ~Ops() = default;

  /// `reference`, `cpu` or `cuda` (docs/contract.md).
  virtual std::string_view name() const = 0;

  /// What activations and residuals are held in.
  virtual mx::Dtype dtype() const = 0;

  /// The coarsest dtype that operations round rows of prompts to, inside or between them.
  virtual mx::Dtype rounding() const = 0;

  /// What a cache without codes is held in.
  virtual mx::Dtype kv_dtype() const = 0;

  /// Whether attention wants tables in every RopePlan, not only where a chunk holds media tokens.
  virtual bool rotates_by_tables() const = 0;

  /// Bytes that weights take in this backend's form.
  virtual uint64_t weight_bytes(const StoredWeights& stored) const = 0;

  /// Bytes that the operations of a layer hold at most, beside weights and cache.
  virtual uint64_t layer_bytes(const LayerRows& layer) const = 0;

  /// Bytes that this backend holds outside MLX's memory.
  virtual uint64_t own_bytes() const = 0;

  /// Takes a loaded matrix into this backend's form, once at load.
  virtual PackedMatrixPtr pack(Matrix matrix) const = 0;

  /// A vector such as a norm's weight, in the activation dtype.
  virtual mx::array pack_vector(const mx::array& vector) const = 0;

  /// Rows of a table [vocabulary, width] at ids [rows] -> [rows, width].
  virtual mx::array embed(const PackedMatrix& table, const mx::array& ids) const = 0;

  /// x W^T + bias; x [rows, in] -> [rows, out].
  virtual mx::array linear(const Activations& x, const PackedMatrix& w) const = 0;

  /// residual + x W^T + bias.
  virtual mx::array linear_residual(
      const Activations& x, const PackedMatrix& w, const mx::array& residual
  ) const = 0;

  /// gelu(x W^T + bias).
  virtual mx::array linear_gelu(const Activations& x, const PackedMatrix& w, Gelu gelu) const = 0;

  /// Norm over the last axis.
  virtual mx::array norm(const mx::array& x, const Norm& norm) const = 0;

  /// Several projections of one normed input: q, k, v, or the language model head.
  virtual std::vector<mx::array> norm_linears(
      const Activations& x, const Norm& norm, std::span<const PackedMatrixPtr> ws
  ) const = 0;

  /// silu(gate(y)) * up(y) with y = rms_norm(x).
  virtual mx::array norm_swiglu(
      const Activations& x, const RmsNorm& norm, const PackedMatrix& gate, const PackedMatrix& up
  ) const = 0;

  /// x + the weighted sum of the chosen experts' SwiGLU of y = rms_norm(x). The router's logits,
  /// softmax over all experts, choice and weights are float32; only the weights are rounded to the
  /// activation dtype.
  virtual mx::array experts_residual(
      const mx::array& x, const RmsNorm& norm, const Experts& experts
  ) const = 0;

  /// For each of the sequences, which take all rows in order: norms each head of q and k where
  /// norms are given, rotates both, writes k and v behind the cached rows, and lets each query row
  /// attend to all rows up to its own. K and V are never repeated for the query heads.
  virtual AttentionResult attention(
      const Qkv& qkv,
      const HeadShape& shape,
      const std::optional<HeadNorms>& norms,
      std::span<const AttentionRows> sequences
  ) const = 0;

  /// x + o_proj(attention of q, k and v), which are projections of rms_norm(x).
  virtual AttentionResult attention_residual(
      const mx::array& x,
      const AttentionWeights& weights,
      const HeadShape& shape,
      std::span<const AttentionRows> sequences
  ) const;

  /// x + down(silu(gate(y)) * up(y)) with y = rms_norm(x).
  virtual mx::array swiglu_residual(
      const Activations& x,
      const RmsNorm& norm,
      const PackedMatrix& gate,
      const PackedMatrix& up,
      const PackedMatrix& down
  ) const;

  /// The largest of each run of kPeakRun logits, the last run being what is left; NaN where one of
  /// them is not finite. [rows, vocab_size] -> [rows, runs] float32. With them a sampler need not
  /// walk through the vocabulary.
  virtual mx::array peaks(const mx::array& logits) const;

  /// Attention of a vision tower: rows of a segment see each other and nothing else.
  /// qkv [rows, 3 * heads * head_dim]; `cu_seqlens` are segment borders from 0 to rows. Returns
  /// what the rows of `queries` see, [queries.count, heads * head_dim]. On a CPU bits are those of
  /// the whole where queries begin and end kQueryStep rows behind a segment's first row, or a
  /// multiple of that, or with a segment.
  virtual mx::array segment_attention(
      const mx::array& qkv,
      int heads,
      const RopeTables& rope,
      std::span<const int> cu_seqlens,
      const RowRange& queries
  ) const = 0;

  /// Pairs of a query and a key from which segment_attention() takes so long that others would
  /// notice: a few hundredths of a second on a small CPU.
  virtual int64_t pairs_of_a_pause() const;
};

/// In what the reference multiplies. A GPU's kernels take any dtype and add up in float32. Those of
/// MLX for a CPU add up in the dtype of their input and know no bfloat16 experts, so there weights
/// are unpacked to float32 at load, and products and attention computed in it; what they return is
/// rounded to the activation dtype.
enum class Arithmetic { native, float32 };

/// The reference: stock MLX operations on any MLX device.
std::unique_ptr<const Ops> make_reference_ops(mx::Dtype dtype, Arithmetic arithmetic);

/// What a user chooses of how operations compute.
struct OpsOptions {
  /// Rows of prompts and pictures are rounded to 8-bit integers where they meet weights in codes:
  /// faster, and lossy.
  bool prefill_int8 = false;
};

/// The backend for this machine and for weights stored in `stored`. `requested` is the value of
/// WHIMBREL_OPS, empty for the default. Throws Error(Fault::usage) for one that isn't built in, or
/// that can't do as the options say.
std::unique_ptr<const Ops> make_ops(
    std::string_view requested, mx::Dtype stored, const OpsOptions& options = {}
);

/// A number as an array of the given dtype. The only way for a scalar into a graph: a plain C++
/// float would promote a bfloat16 graph to float32.
mx::array scalar(float value, mx::Dtype dtype);

/// Whether a query of `rows` rows needs a mask.
Mask mask_for(int rows);

}  // namespace whimbrel::ops
