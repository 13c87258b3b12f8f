#include <mlx/mlx.h>

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "ops/ops.h"

namespace whimbrel::ops {

namespace {

class ReferenceMatrix : public PackedMatrix {
 public:
  explicit ReferenceMatrix(Matrix matrix) : matrix_(std::move(matrix)) {}

  const Matrix& matrix() const { return matrix_; }

 private:
  Matrix matrix_;
};

const Matrix& unpack(const PackedMatrix& packed) {
  return dynamic_cast<const ReferenceMatrix&>(packed).matrix();
}

/// x [rows, in] -> [rows, out].
mx::array product(const mx::array& x, const Matrix& w) {
  if (w.quantization) {
    return mx::quantized_matmul(
        x,
        w.weight,
        *w.scales,
        w.offsets,
        /*transpose=*/true,
        w.quantization->group_size,
        w.quantization->bits
    );
  }
  return mx::matmul(x, mx::transpose(w.weight));
}

/// x [rows, 1 or chosen, 1, in], chosen [rows, chosen] -> [rows, chosen, 1, out].
mx::array chosen_product(const mx::array& x, const Matrix& w, const mx::array& chosen) {
  if (w.quantization) {
    return mx::gather_qmm(
        x,
        w.weight,
        *w.scales,
        w.offsets,
        std::nullopt,
        chosen,
        /*transpose=*/true,
        w.quantization->group_size,
        w.quantization->bits
    );
  }
  return mx::gather_mm(x, mx::swapaxes(w.weight, -1, -2), std::nullopt, chosen);
}

mx::array silu(const mx::array& x) {
  return mx::multiply(x, mx::sigmoid(x));
}

mx::array erf_gelu(const mx::array& x) {
  const mx::array half = scalar(0.5F, x.dtype());
  const mx::array one = scalar(1.0F, x.dtype());
  const mx::array scaled = mx::multiply(x, scalar(std::numbers::sqrt2_v<float> / 2, x.dtype()));
  return mx::multiply(mx::multiply(x, half), mx::add(one, mx::erf(scaled)));
}

/// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
mx::array tanh_gelu(const mx::array& x) {
  const auto number = [&x](double value) { return scalar(static_cast<float>(value), x.dtype()); };
  const mx::array cube = mx::multiply(mx::multiply(x, x), x);
  const mx::array inner = mx::multiply(
      number(std::sqrt(2.0 / std::numbers::pi)), mx::add(x, mx::multiply(number(0.044715), cube))
  );
  return mx::multiply(mx::multiply(x, number(0.5)), mx::add(number(1.0), mx::tanh(inner)));
}

mx::array activate(const mx::array& x, Gelu gelu) {
  switch (gelu) {
    case Gelu::erf:
      return erf_gelu(x);
    case Gelu::tanh:
      return tanh_gelu(x);
    case Gelu::quick:
      return mx::multiply(x, mx::sigmoid(mx::multiply(x, scalar(1.702F, x.dtype()))));
  }
  throw std::logic_error("[activate] got no such GELU");
}

/// Rotates pairs (i, i + head_dim / 2) of the last axis; cos and sin broadcast against x.
mx::array rotate(const mx::array& x, const mx::array& cos, const mx::array& sin) {
  const std::vector<mx::array> halves = mx::split(mx::astype(x, mx::float32), 2, -1);
  const mx::array& low = halves[0];
  const mx::array& high = halves[1];
  const mx::array rotated = mx::concatenate(
      {mx::subtract(mx::multiply(low, cos), mx::multiply(high, sin)),
       mx::add(mx::multiply(high, cos), mx::multiply(low, sin))},
      -1
  );
  return mx::astype(rotated, x.dtype());
}

/// x [1, heads, rows, head_dim].
mx::array apply_rope(const mx::array& x, const RopePlan& rope) {
  if (rope.tables) {
    return rotate(x, rope.tables->cos, rope.tables->sin);
  }
  return mx::fast::rope(
      x, x.shape(-1), /*traditional=*/false, std::nullopt, 1.0F, rope.offset, rope.periods
  );
}

/// [rows, heads * head_dim] -> [1, heads, rows, head_dim].
mx::array split_heads(const mx::array& x, int heads, int head_dim) {
  return mx::transpose(mx::reshape(x, {1, x.shape(0), heads, head_dim}), {0, 2, 1, 3});
}

mx::array write_into(const mx::array& buffer, const mx::array& rows, int first) {
  const mx::Shape start = {0, 0, first, 0};
  mx::Shape stop = buffer.shape();
  stop[2] = first + rows.shape(2);
  return mx::slice_update(buffer, rows, start, stop);
}

KVRows write_rows(const KVRows& cache, const mx::array& rows, const KVFormat& format, int first) {
  if (format.bits == 0) {
    return {write_into(cache.data, rows, first)};
  }
  const std::vector<mx::array> packed = mx::quantize(rows, format.group_size, format.bits);
  return {
      write_into(cache.data, packed[0], first),
      write_into(*cache.scales, packed[1], first),
      write_into(*cache.offsets, packed[2], first)
  };
}

mx::array first_of(const mx::array& buffer, int length) {
  mx::Shape stop = buffer.shape();
  stop[2] = length;
  return mx::slice(buffer, {0, 0, 0, 0}, stop);
}

mx::array first_rows(const KVRows& cache, const KVFormat& format, int length) {
  if (format.bits == 0) {
    return first_of(cache.data, length);
  }
  return mx::dequantize(
      first_of(cache.data, length),
      first_of(*cache.scales, length),
      first_of(*cache.offsets, length),
      format.group_size,
      format.bits
  );
}

mx::array rows_of(const mx::array& x, const RowRange& rows) {
  mx::Shape start(x.ndim(), 0);
  mx::Shape stop = x.shape();
  start[0] = rows.first;
  stop[0] = rows.first + rows.count;
  return mx::slice(x, start, stop);
}

/// Borders of the segments that the queries are in.
std::span<const int> seen_segments(std::span<const int> cu_seqlens, const RowRange& queries) {
  const auto first = std::ranges::upper_bound(cu_seqlens, queries.first) - 1;
  const auto last = std::ranges::lower_bound(cu_seqlens, queries.first + queries.count);
  return {first, last + 1};
}

/// End index in `cu_seqlens` of the run of segments from `first` on that are equally long.
size_t end_of_equal_run(std::span<const int> cu_seqlens, size_t first) {
  const int length = cu_seqlens[first + 1] - cu_seqlens[first];
  size_t end = first + 1;
  while (end + 1 < cu_seqlens.size() && cu_seqlens[end + 1] - cu_seqlens[end] == length) {
    ++end;
  }
  return end;
}

class ReferenceOps : public Ops {
 public:
  ReferenceOps(mx::Dtype dtype, Arithmetic arithmetic)
      : dtype_(dtype), compute_dtype_(arithmetic == Arithmetic::float32 ? mx::float32 : dtype) {}

  std::string_view name() const override { return "reference"; }

  mx::Dtype dtype() const override { return dtype_; }

  mx::Dtype rounding() const override { return dtype_; }

  mx::Dtype kv_dtype() const override { return dtype_; }

  bool rotates_by_tables() const override { return false; }

  uint64_t weight_bytes(const StoredWeights& stored) const override {
    return compute_dtype_ == mx::float32 ? stored.parameters * sizeof(float) : stored.bytes;
  }

  // MLX runs a few operations ahead of the one that computes, so the parts of a layer add up; their
  // numbers were measured (tests/engine/memory_estimate_test.cpp holds them to 5 % of the whole).
  uint64_t layer_bytes(const LayerRows& layer) const override {
    const uint64_t row =
        8 * layer.hidden + 6 * layer.attention + 4 * layer.feed_forward + layer.input;
    return sizeof(float) * (layer.rows * row + layer.heads * layer.rows * layer.columns);
  }

  uint64_t own_bytes() const override { return 0; }

  PackedMatrixPtr pack(Matrix matrix) const override {
    const auto cast = [this](std::optional<mx::array>& array) {
      if (array) {
        array = mx::astype(*array, compute_dtype_);
      }
    };
    cast(matrix.bias);
    cast(matrix.scales);
    cast(matrix.offsets);
    if (!matrix.quantization) {
      matrix.weight = mx::astype(matrix.weight, compute_dtype_);
    } else if (compute_dtype_ == mx::float32) {
      matrix.weight = mx::dequantize(
          matrix.weight,
          *matrix.scales,
          matrix.offsets,
          matrix.quantization->group_size,
          matrix.quantization->bits
      );
      matrix.scales.reset();
      matrix.offsets.reset();
      matrix.quantization.reset();
    }
    evaluate(matrix);
    return std::make_shared<ReferenceMatrix>(std::move(matrix));
  }

  mx::array pack_vector(const mx::array& vector) const override {
    mx::array packed = mx::astype(vector, dtype_);
    packed.eval();
    return packed;
  }

  mx::array embed(const PackedMatrix& table, const mx::array& ids) const override {
    const Matrix& w = unpack(table);
    if (!w.quantization) {
      return rounded(mx::take(w.weight, ids, 0));
    }
    return mx::dequantize(
        mx::take(w.weight, ids, 0),
        mx::take(*w.scales, ids, 0),
        mx::take(*w.offsets, ids, 0),
        w.quantization->group_size,
        w.quantization->bits
    );
  }

  mx::array linear(const Activations& x, const PackedMatrix& packed) const override {
    return rounded(unrounded_linear(x.rows, packed));
  }

  mx::array linear_residual(
      const Activations& x, const PackedMatrix& w, const mx::array& residual
  ) const override {
    return mx::add(residual, linear(x, w));
  }

  mx::array linear_gelu(const Activations& x, const PackedMatrix& w, Gelu gelu) const override {
    return activate(linear(x, w), gelu);
  }

  mx::array norm(const mx::array& x, const Norm& norm) const override {
    if (const auto* rms = std::get_if<RmsNorm>(&norm)) {
      return mx::fast::rms_norm(x, rms->weight, rms->eps);
    }
    const auto& layer = std::get<LayerNorm>(norm);
    return mx::fast::layer_norm(x, layer.weight, layer.bias, layer.eps);
  }

  std::vector<mx::array> norm_linears(
      const Activations& x, const Norm& norm, std::span<const PackedMatrixPtr> ws
  ) const override {
    const Activations y{this->norm(x.rows, norm), x.prefill};
    std::vector<mx::array> outputs;
    outputs.reserve(ws.size());
    for (const PackedMatrixPtr& w : ws) {
      outputs.push_back(linear(y, *w));
    }
    return outputs;
  }

  mx::array norm_swiglu(
      const Activations& x, const RmsNorm& norm, const PackedMatrix& gate, const PackedMatrix& up
  ) const override {
    const Activations y{this->norm(x.rows, norm), x.prefill};
    return mx::multiply(silu(linear(y, gate)), linear(y, up));
  }

  mx::array experts_residual(
      const mx::array& x, const RmsNorm& norm, const Experts& experts
  ) const override {
    const mx::array y = this->norm(x, norm);
    const auto [chosen, weights] = route(y, experts);
    const mx::array rows = mx::expand_dims(mx::astype(y, compute_dtype_), {1, 2});
    const auto expert = [&](const mx::array& input, const PackedMatrixPtr& w) {
      return chosen_product(input, unpack(*w), chosen);
    };
    const mx::array gate = rounded(expert(rows, experts.gate_proj));
    const mx::array up = rounded(expert(rows, experts.up_proj));
    const mx::array hidden = mx::astype(mx::multiply(silu(gate), up), compute_dtype_);
    const mx::array outputs = rounded(mx::squeeze(expert(hidden, experts.down_proj), 2));
    const mx::array weighted =
        mx::multiply(outputs, mx::expand_dims(mx::astype(weights, dtype_), 2));
    return mx::add(x, mx::sum(weighted, 1));
  }

  AttentionResult attention(
      const Qkv& qkv,
      const HeadShape& shape,
      const std::optional<HeadNorms>& norms,
      std::span<const AttentionRows> sequences
  ) const override {
    std::vector<mx::array> outputs;
    std::vector<KVBuffer> caches;
    for (const AttentionRows& sequence : sequences) {
      const auto rows = [&](const mx::array& x) {
        return rows_of(x, {sequence.first, sequence.count});
      };
      SequenceResult result =
          attend_sequence({rows(qkv.q), rows(qkv.k), rows(qkv.v)}, shape, norms, sequence);
      outputs.push_back(result.output);
      caches.push_back(std::move(result.cache));
    }
    return {outputs.size() == 1 ? outputs[0] : mx::concatenate(outputs, 0), std::move(caches)};
  }

  mx::array segment_attention(
      const mx::array& qkv,
      int heads,
      const RopeTables& rope,
      std::span<const int> cu_seqlens,
      const RowRange& queries
  ) const override {
    const int head_dim = qkv.shape(-1) / (3 * heads);
    const std::span<const int> borders = seen_segments(cu_seqlens, queries);
    const RowRange seen = {borders.front(), borders.back() - borders.front()};
    const auto kind = [&](int index, const RowRange& rows) {
      const mx::array split = mx::reshape(rows_of(qkv, rows), {rows.count, 3, heads, head_dim});
      return mx::take(split, index, 1);
    };
    const auto rotated = [&](int index, const RowRange& rows) {
      const mx::array cos = mx::expand_dims(rows_of(rope.cos, rows), 1);
      const mx::array sin = mx::expand_dims(rows_of(rope.sin, rows), 1);
      return rotate(kind(index, rows), cos, sin);
    };
    return attend_segments(rotated(0, queries), rotated(1, seen), kind(2, seen), borders, queries);
  }

 private:
  mx::array rounded(const mx::array& x) const { return mx::astype(x, dtype_); }

  mx::array unrounded_linear(const mx::array& x, const PackedMatrix& packed) const {
    const Matrix& w = unpack(packed);
    const mx::array y = product(mx::astype(x, compute_dtype_), w);
    return w.bias ? mx::add(y, *w.bias) : y;
  }

  struct Routing {
    mx::array chosen;   // experts, [rows, per_token]
    mx::array weights;  // of the chosen, the same shape, float32
  };

  Routing route(const mx::array& y, const Experts& experts) const {
    const mx::array logits = mx::astype(unrounded_linear(y, *experts.router), mx::float32);
    const mx::array probabilities = mx::softmax(logits, -1);
    const mx::array order =
        mx::argpartition(mx::negative(probabilities), experts.per_token - 1, -1);
    const mx::Shape stop = {y.shape(0), experts.per_token};
    const mx::array chosen = mx::slice(order, {0, 0}, stop);
    const mx::array weights = mx::take_along_axis(probabilities, chosen, -1);
    if (!experts.renormalized) {
      return {chosen, weights};
    }
    return {chosen, mx::divide(weights, mx::sum(weights, -1, /*keepdims=*/true))};
  }

  /// [rows, heads * head_dim] -> [1, heads, rows, head_dim], normed where there is a norm, rotated.
  static mx::array rotated_heads(
      const mx::array& x, int heads, int head_dim, const RmsNorm* norm, const RopePlan& rope
  ) {
    mx::array split = split_heads(x, heads, head_dim);
    if (norm != nullptr) {
      split = mx::fast::rms_norm(split, norm->weight, norm->eps);
    }
    return apply_rope(split, rope);
  }

  struct SequenceResult {
    mx::array output;
    KVBuffer cache;
  };

  /// `qkv` holds the sequence's rows only.
  SequenceResult attend_sequence(
      const Qkv& qkv,
      const HeadShape& shape,
      const std::optional<HeadNorms>& norms,
      const AttentionRows& sequence
  ) const {
    const auto [heads, kv_heads, head_dim] = shape;
    const int length = sequence.cached + sequence.count;
    const mx::array q =
        rotated_heads(qkv.q, heads, head_dim, norms ? &norms->q_norm : nullptr, sequence.rope);
    const mx::array k =
        rotated_heads(qkv.k, kv_heads, head_dim, norms ? &norms->k_norm : nullptr, sequence.rope);
    const mx::array v = split_heads(qkv.v, kv_heads, head_dim);
    const KVFormat& format = sequence.cache.format;
    KVBuffer written{
        write_rows(sequence.cache.keys, k, format, sequence.cached),
        write_rows(sequence.cache.values, v, format, sequence.cached),
        format
    };
    const mx::array out = attend(
        q,
        first_rows(written.keys, format, length),
        first_rows(written.values, format, length),
        mask_for(sequence.count)
    );
    const mx::array rows =
        mx::reshape(mx::transpose(out, {0, 2, 1, 3}), {sequence.count, heads * head_dim});
    return {rows, std::move(written)};
  }

  /// q, k, v [batch, heads or kv_heads, rows, head_dim] -> like q.
  mx::array attend(const mx::array& q, const mx::array& k, const mx::array& v, Mask mask) const {
    const float scale = 1.0F / std::sqrt(static_cast<float>(q.shape(-1)));
    return rounded(
        mx::fast::scaled_dot_product_attention(
            mx::astype(q, compute_dtype_),
            mx::astype(k, compute_dtype_),
            mx::astype(v, compute_dtype_),
            scale,
            mask == Mask::causal ? "causal" : ""
        )
    );
  }

  /// q [queries.count, heads, head_dim]; k and v of the segments between the borders.
  mx::array attend_segments(
      const mx::array& q,
      const mx::array& k,
      const mx::array& v,
      std::span<const int> borders,
      const RowRange& queries
  ) const {
    std::vector<mx::array> outputs;
    const int query_end = queries.first + queries.count;
    // Segments that end among the queries; one that they cut is attended to by itself.
    const auto ended = std::ranges::upper_bound(borders, query_end) - borders.begin();
    const std::span<const int> ends = borders.first(static_cast<size_t>(ended));
    for (size_t first = 0; first + 1 < borders.size();) {
      const bool whole = queries.first <= borders[first] && first + 1 < ends.size();
      const size_t end = whole ? end_of_equal_run(ends, first) : first + 1;
      const int begin = std::max(queries.first, borders[first]);
      const int rows = std::min(query_end, borders[end]) - begin;
      if (rows > 0) {
        const RowRange keys = {borders[first] - borders.front(), borders[end] - borders[first]};
        const mx::array asking = rows_of(q, {begin - queries.first, rows});
        const int count = static_cast<int>(end - first);
        outputs.push_back(attend_equal_segments(asking, rows_of(k, keys), rows_of(v, keys), count));
      }
      first = end;
    }
    return mx::concatenate(outputs, 0);
  }

  /// q, k, v [rows, heads, head_dim], `count` segments of equal length -> [rows, heads * head_dim].
  mx::array attend_equal_segments(
      const mx::array& q, const mx::array& k, const mx::array& v, int count
  ) const {
    const int heads = q.shape(1);
    const int head_dim = q.shape(2);
    const auto batched = [&](const mx::array& x) {
      const int rows = x.shape(0) / count;
      return mx::transpose(mx::reshape(x, {count, rows, heads, head_dim}), {0, 2, 1, 3});
    };
    const mx::array out = attend(batched(q), batched(k), batched(v), Mask::none);
    return mx::reshape(mx::transpose(out, {0, 2, 1, 3}), {q.shape(0), heads * head_dim});
  }

  static void evaluate(Matrix& matrix) {
    std::vector<mx::array> arrays = {matrix.weight};
    for (const std::optional<mx::array>& array : {matrix.scales, matrix.offsets, matrix.bias}) {
      if (array) {
        arrays.push_back(*array);
      }
    }
    mx::eval(arrays);
  }

  mx::Dtype dtype_;
  mx::Dtype compute_dtype_;
};

}  // namespace

std::unique_ptr<const Ops> make_reference_ops(mx::Dtype dtype, Arithmetic arithmetic) {
  return std::make_unique<ReferenceOps>(dtype, arithmetic);
}

mx::array scalar(float value, mx::Dtype dtype) {
  return mx::array(value, dtype);
}

KVFormat kv_format(int bits, mx::Dtype dtype, int head_dim) {
  if (bits == 0) {
    return {.dtype = dtype};
  }
  for (const int group_size : {128, 64, 32}) {
    if (bits == 8 && head_dim % group_size == 0) {
      return {dtype, bits, group_size};
    }
  }
  throw Error(
      Fault::usage,
      "--kv-bits",
      "got {} for heads of {}, expected 8 and heads that 32 divides; leave the flag away",
      bits,
      head_dim
  );
}

Mask mask_for(int rows) {
  return rows == 1 ? Mask::none : Mask::causal;
}

}  // namespace whimbrel::ops
