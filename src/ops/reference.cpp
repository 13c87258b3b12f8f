#include <mlx/mlx.h>

#include <cmath>
#include <numbers>

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

mx::array silu(const mx::array& x) {
  return mx::multiply(x, mx::sigmoid(x));
}

mx::array gelu(const mx::array& x) {
  const mx::array half = scalar(0.5F, x.dtype());
  const mx::array one = scalar(1.0F, x.dtype());
  const mx::array scaled = mx::multiply(x, scalar(std::numbers::sqrt2_v<float> / 2, x.dtype()));
  return mx::multiply(mx::multiply(x, half), mx::add(one, mx::erf(scaled)));
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

mx::array write_rows(const mx::array& buffer, const mx::array& rows, int first) {
  const mx::Shape start = {0, 0, first, 0};
  mx::Shape stop = buffer.shape();
  stop[2] = first + rows.shape(2);
  return mx::slice_update(buffer, rows, start, stop);
}

mx::array first_rows(const mx::array& buffer, int length) {
  mx::Shape stop = buffer.shape();
  stop[2] = length;
  return mx::slice(buffer, {0, 0, 0, 0}, stop);
}

mx::array rows_of(const mx::array& x, int first, int end) {
  mx::Shape start(x.ndim(), 0);
  mx::Shape stop = x.shape();
  start[0] = first;
  stop[0] = end;
  return mx::slice(x, start, stop);
}

/// q, k, v [rows, heads, head_dim], `count` segments of equal length -> [rows, heads * head_dim].
mx::array attend_equal_segments(
    const mx::array& q, const mx::array& k, const mx::array& v, int count
) {
  const int rows = q.shape(0);
  const int heads = q.shape(1);
  const int head_dim = q.shape(2);
  const auto batched = [&](const mx::array& x) {
    return mx::transpose(mx::reshape(x, {count, rows / count, heads, head_dim}), {0, 2, 1, 3});
  };
  const float scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
  const mx::array out =
      mx::fast::scaled_dot_product_attention(batched(q), batched(k), batched(v), scale);
  return mx::reshape(mx::transpose(out, {0, 2, 1, 3}), {rows, heads * head_dim});
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
  ReferenceOps(mx::Dtype dtype, bool dequantize) : dtype_(dtype), dequantize_(dequantize) {}

  std::string_view name() const override { return "reference"; }

  mx::Dtype dtype() const override { return dtype_; }

  PackedMatrixPtr pack(Matrix matrix) const override {
    const auto cast = [this](std::optional<mx::array>& array) {
      if (array) {
        array = mx::astype(*array, dtype_);
      }
    };
    cast(matrix.bias);
    cast(matrix.scales);
    cast(matrix.offsets);
    if (!matrix.quantization) {
      matrix.weight = mx::astype(matrix.weight, dtype_);
    } else if (dequantize_) {
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
      return mx::take(w.weight, ids, 0);
    }
    return mx::dequantize(
        mx::take(w.weight, ids, 0),
        mx::take(*w.scales, ids, 0),
        mx::take(*w.offsets, ids, 0),
        w.quantization->group_size,
        w.quantization->bits
    );
  }

  mx::array linear(const mx::array& x, const PackedMatrix& packed) const override {
    const Matrix& w = unpack(packed);
    const mx::array y = product(x, w);
    return w.bias ? mx::add(y, *w.bias) : y;
  }

  mx::array linear_residual(
      const mx::array& x, const PackedMatrix& w, const mx::array& residual
  ) const override {
    return mx::add(residual, linear(x, w));
  }

  mx::array linear_gelu(const mx::array& x, const PackedMatrix& w) const override {
    return gelu(linear(x, w));
  }

  mx::array rms_norm(const mx::array& x, const RmsNorm& norm) const override {
    return mx::fast::rms_norm(x, norm.weight, norm.eps);
  }

  std::vector<mx::array> norm_linears(
      const mx::array& x, const RmsNorm& norm, std::span<const PackedMatrixPtr> ws
  ) const override {
    const mx::array y = rms_norm(x, norm);
    std::vector<mx::array> outputs;
    outputs.reserve(ws.size());
    for (const PackedMatrixPtr& w : ws) {
      outputs.push_back(linear(y, *w));
    }
    return outputs;
  }

  mx::array norm_swiglu(
      const mx::array& x, const RmsNorm& norm, const PackedMatrix& gate, const PackedMatrix& up
  ) const override {
    const mx::array y = rms_norm(x, norm);
    return mx::multiply(silu(linear(y, gate)), linear(y, up));
  }

  AttentionResult attention(
      const Qkv& qkv,
      const HeadShape& shape,
      const RopePlan& rope,
      const KVBuffer& cache,
      int cached
  ) const override {
    const int rows = qkv.q.shape(0);
    const mx::array q = apply_rope(split_heads(qkv.q, shape.heads, shape.head_dim), rope);
    const mx::array k = apply_rope(split_heads(qkv.k, shape.kv_heads, shape.head_dim), rope);
    const mx::array v = split_heads(qkv.v, shape.kv_heads, shape.head_dim);
    KVBuffer written{write_rows(cache.keys, k, cached), write_rows(cache.values, v, cached)};
    const mx::array out = mx::fast::scaled_dot_product_attention(
        q,
        first_rows(written.keys, cached + rows),
        first_rows(written.values, cached + rows),
        1.0F / std::sqrt(static_cast<float>(shape.head_dim)),
        mask_for(rows) == Mask::causal ? "causal" : ""
    );
    const mx::array joined =
        mx::reshape(mx::transpose(out, {0, 2, 1, 3}), {rows, shape.heads * shape.head_dim});
    return {joined, std::move(written)};
  }

  mx::array segment_attention(
      const mx::array& qkv, int heads, const RopeTables& rope, std::span<const int> cu_seqlens
  ) const override {
    const int head_dim = qkv.shape(-1) / (3 * heads);
    const mx::array split = mx::reshape(qkv, {qkv.shape(0), 3, heads, head_dim});
    const mx::array cos = mx::expand_dims(rope.cos, 1);
    const mx::array sin = mx::expand_dims(rope.sin, 1);
    const mx::array q = rotate(mx::take(split, 0, 1), cos, sin);
    const mx::array k = rotate(mx::take(split, 1, 1), cos, sin);
    const mx::array v = mx::take(split, 2, 1);
    std::vector<mx::array> outputs;
    for (size_t first = 0; first + 1 < cu_seqlens.size();) {
      const size_t end = end_of_equal_run(cu_seqlens, first);
      const auto run = [&](const mx::array& x) {
        return rows_of(x, cu_seqlens[first], cu_seqlens[end]);
      };
      const int count = static_cast<int>(end - first);
      outputs.push_back(attend_equal_segments(run(q), run(k), run(v), count));
      first = end;
    }
    return mx::concatenate(outputs, 0);
  }

 private:
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
  bool dequantize_;
};

}  // namespace

std::unique_ptr<const Ops> make_reference_ops(mx::Dtype dtype, bool dequantize) {
  return std::make_unique<ReferenceOps>(dtype, dequantize);
}

mx::array scalar(float value, mx::Dtype dtype) {
  return mx::array(value, dtype);
}

Mask mask_for(int rows) {
  return rows == 1 ? Mask::none : Mask::causal;
}

}  // namespace whimbrel::ops
