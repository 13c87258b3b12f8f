#include "ops/cpu/cpu_ops.h"

#include <algorithm>
#include <numeric>

#include "ops/cpu/matrix.h"
#include "ops/cpu/operation.h"
#include "ops/cpu/product.h"
#include "ops/cpu/workspace.h"

namespace whimbrel::ops::cpu {

namespace {

using MatrixPtr = std::shared_ptr<const CpuMatrix>;

MatrixPtr matrix_of(const PackedMatrixPtr& packed) {
  return std::dynamic_pointer_cast<const CpuMatrix>(packed);
}

/// Operations outlive the graph that made them, in the stream's queue, so they hold matrices; a
/// matrix that came by reference lives as long as its model, which waits for its stream.
const CpuMatrix& matrix_of(const PackedMatrix& packed) {
  return dynamic_cast<const CpuMatrix&>(packed);
}

const float* numbers(const mx::array& vector) {
  return vector.data<float>();
}

RowNorm row_norm(const Norm& norm) {
  if (const auto* rms = std::get_if<RmsNorm>(&norm)) {
    return {numbers(rms->weight), nullptr, rms->eps};
  }
  const auto& layer = std::get<LayerNorm>(norm);
  return {numbers(layer.weight), numbers(layer.bias), layer.eps};
}

Activation activation_of(Gelu gelu) {
  switch (gelu) {
    case Gelu::erf:
      return Activation::gelu_erf;
    case Gelu::tanh:
      return Activation::gelu_tanh;
    case Gelu::quick:
      return Activation::gelu_quick;
  }
  throw std::logic_error("[activation_of] got no such GELU");
}

struct Embed {
  static constexpr const char* kName = "Embed";
  const CpuMatrix* table;
  int rows;

  void operator()(Workspace& workspace, const Memory& memory) const {
    const auto* ids = memory.in<int32_t>(0);
    auto* out = memory.out<float>(0);
    const auto width = static_cast<size_t>(table->inputs());
    workspace.context.pool.parallel_for(rows, [&](int row, int) {
      table->unpack_row(ids[row], out + row * width);
    });
  }
};

struct NormRows {
  static constexpr const char* kName = "Norm";
  RowNorm norm;
  int rows;
  int width;

  void operator()(Workspace& workspace, const Memory& memory) const {
    const auto* x = memory.in<float>(0);
    auto* out = memory.out<float>(0);
    workspace.context.pool.parallel_for(rows, [&](int row, int) {
      const size_t start = static_cast<size_t>(row) * width;
      apply_norm(workspace.context.kernels, norm, x + start, width, out + start);
    });
  }
};

/// One product: inputs x and, for one that is added to something, the residual.
struct Linear {
  static constexpr const char* kName = "Linear";
  const CpuMatrix* w;
  Activation activation;
  int rows;

  void operator()(Workspace& workspace, const Memory& memory) const {
    workspace.rows.prepare(
        workspace.context, {.x = memory.in<float>(0), .rows = rows, .width = w->inputs()}, {&w, 1}
    );
    const Product product{
        .w = w,
        .activation = activation,
        .residual = memory.inputs.size() > 1 ? memory.in<float>(1) : nullptr,
        .out = memory.out<float>(0),
    };
    multiply_all(workspace.context, workspace.rows, {&product, 1});
  }
};

/// Several products of one normed input.
struct NormLinears {
  static constexpr const char* kName = "NormLinears";
  RowNorm norm;
  std::vector<MatrixPtr> ws;
  int rows;

  void operator()(Workspace& workspace, const Memory& memory) const {
    std::vector<const CpuMatrix*> matrices;
    std::vector<Product> products;
    for (size_t i = 0; i < ws.size(); ++i) {
      matrices.push_back(ws[i].get());
      products.push_back({.w = ws[i].get(), .out = memory.out<float>(i)});
    }
    workspace.rows.prepare(
        workspace.context,
        {.x = memory.in<float>(0), .rows = rows, .width = ws[0]->inputs(), .norm = norm},
        matrices
    );
    multiply_all(workspace.context, workspace.rows, products);
  }
};

struct NormSwiglu {
  static constexpr const char* kName = "NormSwiglu";
  RowNorm norm;
  const CpuMatrix* gate;
  const CpuMatrix* up;
  int rows;

  void operator()(Workspace& workspace, const Memory& memory) const {
    const CpuMatrix* const matrices[] = {gate, up};
    workspace.rows.prepare(
        workspace.context,
        {.x = memory.in<float>(0), .rows = rows, .width = gate->inputs(), .norm = norm},
        matrices
    );
    const Product product{.w = gate, .up = up, .out = memory.out<float>(0)};
    multiply_all(workspace.context, workspace.rows, {&product, 1});
  }
};

struct ExpertsResidual {
  static constexpr const char* kName = "ExpertsResidual";
  RowNorm norm;
  MatrixPtr router;
  MatrixPtr gate_proj;
  MatrixPtr up_proj;
  MatrixPtr down_proj;
  int per_token;
  bool renormalized;
  int rows;

  void operator()(Workspace& workspace, const Memory& memory) const {
    run_experts(
        workspace.context,
        workspace.experts,
        {
            .router = router.get(),
            .gate_proj = gate_proj.get(),
            .up_proj = up_proj.get(),
            .down_proj = down_proj.get(),
            .per_token = per_token,
            .renormalized = renormalized,
            .norm = norm,
            .x = memory.in<float>(0),
            .rows = rows,
            .out = memory.out<float>(0),
        }
    );
  }
};

/// Rows of one sequence; its arrays stand in order behind q, k and v: cos, sin, and the cache's.
struct SequencePlan {
  int first;
  int count;
  int cached;
  int capacity;
};

/// Inputs q, k, v, then of each sequence cos, sin, keys and values; in codes the data, scales and
/// offsets of each. Outputs: rows, then each sequence's cache.
struct AttentionOperation {
  static constexpr const char* kName = "Attention";
  HeadShape shape;
  HeadNorm q_norm;
  HeadNorm k_norm;
  int group_size;
  std::vector<SequencePlan> sequences;

  size_t arrays_a_cache() const { return group_size == 0 ? 2 : 6; }

  KVCache cache_at(const Memory& memory, size_t output) const {
    if (group_size == 0) {
      return {.data = memory.out<std::byte>(output)};
    }
    return {
        .data = memory.out<std::byte>(output),
        .scales = memory.out<uint16_t>(output + 1),
        .offsets = memory.out<uint16_t>(output + 2)
    };
  }

  void operator()(Workspace& workspace, const Memory& memory) const {
    std::vector<AttendSequence> attended;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto& [first, count, cached, capacity] = sequences[i];
      const size_t input = 3 + i * (2 + arrays_a_cache());
      const size_t output = 1 + i * arrays_a_cache();
      attended.push_back({
          .first_row = first,
          .rows = count,
          .cached = cached,
          .capacity = capacity,
          .keys = cache_at(memory, output),
          .values = cache_at(memory, output + arrays_a_cache() / 2),
          .cos = memory.in<float>(input),
          .sin = memory.in<float>(input + 1),
      });
    }
    const auto q_width = static_cast<size_t>(shape.heads) * shape.head_dim;
    const auto kv_width = static_cast<size_t>(shape.kv_heads) * shape.head_dim;
    attend(
        {
            .heads = shape.heads,
            .kv_heads = shape.kv_heads,
            .head_dim = shape.head_dim,
            .group_size = group_size,
            .q = memory.in<float>(0),
            .k = memory.in<float>(1),
            .v = memory.in<float>(2),
            .q_stride = q_width,
            .k_stride = kv_width,
            .v_stride = kv_width,
            .q_norm = q_norm,
            .k_norm = k_norm,
            .sequences = attended,
            .out = memory.out<float>(0),
            .out_stride = q_width,
        },
        workspace.context.kernels,
        workspace.context.pool,
        workspace.attention
    );
  }
};

struct SegmentAttentionOperation {
  static constexpr const char* kName = "SegmentAttention";
  int heads;
  int head_dim;
  std::vector<int> cu_seqlens;

  void operator()(Workspace& workspace, const Memory& memory) const {
    attend_segments(
        {
            .qkv = memory.in<float>(0),
            .heads = heads,
            .head_dim = head_dim,
            .cos = memory.in<float>(1),
            .sin = memory.in<float>(2),
            .cu_seqlens = cu_seqlens,
            .out = memory.out<float>(0),
        },
        workspace.context.kernels,
        workspace.context.pool,
        workspace.attention
    );
  }
};

void append_arrays(std::vector<mx::array>& arrays, const KVRows& rows) {
  arrays.push_back(rows.data);
  if (rows.scales) {
    arrays.push_back(*rows.scales);
    arrays.push_back(*rows.offsets);
  }
}

/// The arrays from `first` on as keys or values.
KVRows kv_rows(const std::vector<mx::array>& arrays, size_t first, bool codes) {
  if (!codes) {
    return {arrays[first]};
  }
  return {arrays[first], arrays[first + 1], arrays[first + 2]};
}

class CpuOps : public Ops {
 public:
  CpuOps(Isa isa, int threads)
      : workspace_(std::make_shared<Workspace>(kernels_for(isa), threads)),
        memory_(std::make_shared<WeightMemory>()) {}

  std::string_view name() const override { return "cpu"; }
  mx::Dtype dtype() const override { return mx::float32; }
  mx::Dtype kv_dtype() const override { return mx::bfloat16; }
  bool rotates_by_tables() const override { return true; }

  uint64_t weight_bytes(const StoredWeights& stored) const override { return stored.bytes; }

  // One operation at a time holds more than the backlog; the widest are SwiGLU's and the one behind
  // it. Numbers as measured (tests/engine/memory_estimate_test.cpp).
  uint64_t layer_bytes(const LayerRows& layer) const override {
    const uint64_t row =
        4 * layer.hidden + 2 * layer.attention + 2 * layer.feed_forward + layer.input;
    return sizeof(float) * layer.rows * row;
  }

  uint64_t own_bytes() const override { return memory_->bytes() + workspace_->bytes(); }

  PackedMatrixPtr pack(Matrix matrix) const override {
    const std::lock_guard lock(workspace_->running);
    return std::make_shared<CpuMatrix>(matrix, memory_, workspace_->context.pool);
  }

  mx::array pack_vector(const mx::array& vector) const override {
    mx::array packed = mx::contiguous(mx::astype(vector, mx::float32));
    packed.eval();
    return packed;
  }

  mx::array embed(const PackedMatrix& table, const mx::array& ids) const override {
    const CpuMatrix& w = matrix_of(table);
    const int rows = static_cast<int>(ids.size());
    return node(Embed{&w, rows}, {rows, w.inputs()}, {mx::astype(ids, mx::int32)});
  }

  mx::array linear(const mx::array& x, const PackedMatrix& w) const override {
    return product(w, Activation::none, {x});
  }

  mx::array linear_residual(
      const mx::array& x, const PackedMatrix& w, const mx::array& residual
  ) const override {
    return product(w, Activation::none, {x, residual});
  }

  mx::array linear_gelu(const mx::array& x, const PackedMatrix& w, Gelu gelu) const override {
    return product(w, activation_of(gelu), {x});
  }

  mx::array norm(const mx::array& x, const Norm& norm) const override {
    const int width = x.shape(-1);
    const int rows = static_cast<int>(x.size()) / width;
    return node(NormRows{row_norm(norm), rows, width}, x.shape(), {x});
  }

  std::vector<mx::array> norm_linears(
      const mx::array& x, const Norm& norm, std::span<const PackedMatrixPtr> ws
  ) const override {
    NormLinears work{row_norm(norm), {}, x.shape(0)};
    std::vector<mx::Shape> shapes;
    for (const PackedMatrixPtr& w : ws) {
      work.ws.push_back(matrix_of(w));
      shapes.push_back({x.shape(0), work.ws.back()->outputs()});
    }
    const std::vector<mx::Dtype> dtypes(ws.size(), mx::float32);
    return nodes(std::move(work), shapes, dtypes, {x});
  }

  mx::array norm_swiglu(
      const mx::array& x, const RmsNorm& norm, const PackedMatrix& gate, const PackedMatrix& up
  ) const override {
    const CpuMatrix& w = matrix_of(gate);
    const int rows = x.shape(0);
    return node(NormSwiglu{row_norm(norm), &w, &matrix_of(up), rows}, {rows, w.outputs()}, {x});
  }

  mx::array experts_residual(
      const mx::array& x, const RmsNorm& norm, const Experts& experts
  ) const override {
    return node(
        ExpertsResidual{
            row_norm(norm),
            matrix_of(experts.router),
            matrix_of(experts.gate_proj),
            matrix_of(experts.up_proj),
            matrix_of(experts.down_proj),
            experts.per_token,
            experts.renormalized,
            x.shape(0)
        },
        x.shape(),
        {x}
    );
  }

  AttentionResult attention(
      const Qkv& qkv,
      const HeadShape& shape,
      const std::optional<HeadNorms>& norms,
      std::span<const AttentionRows> sequences
  ) const override {
    AttentionOperation work{shape, {}, {}, sequences[0].cache.format.group_size, {}};
    if (norms) {
      work.q_norm = {numbers(norms->q_norm.weight), norms->q_norm.eps};
      work.k_norm = {numbers(norms->k_norm.weight), norms->k_norm.eps};
    }
    std::vector<mx::array> inputs = {qkv.q, qkv.k, qkv.v};
    std::vector<mx::Shape> shapes = {qkv.q.shape()};
    std::vector<mx::Dtype> dtypes = {mx::float32};
    std::vector<InPlace> in_place;
    for (const AttentionRows& sequence : sequences) {
      const int capacity = sequence.cache.keys.data.shape(2);
      work.sequences.push_back({sequence.first, sequence.count, sequence.cached, capacity});
      inputs.push_back(sequence.rope.tables->cos);
      inputs.push_back(sequence.rope.tables->sin);
      const size_t first = inputs.size();
      append_arrays(inputs, sequence.cache.keys);
      append_arrays(inputs, sequence.cache.values);
      for (size_t i = first; i < inputs.size(); ++i) {
        in_place.push_back({i, shapes.size()});
        shapes.push_back(inputs[i].shape());
        dtypes.push_back(inputs[i].dtype());
      }
    }
    const std::vector<mx::array> outputs =
        nodes(std::move(work), shapes, dtypes, std::move(inputs), std::move(in_place));
    return {outputs[0], caches_of(outputs, sequences)};
  }

  mx::array segment_attention(
      const mx::array& qkv, int heads, const RopeTables& rope, std::span<const int> cu_seqlens
  ) const override {
    const int width = qkv.shape(-1) / 3;
    return node(
        SegmentAttentionOperation{
            heads, width / heads, std::vector<int>(cu_seqlens.begin(), cu_seqlens.end())
        },
        {qkv.shape(0), width},
        {qkv, rope.cos, rope.sin}
    );
  }

 private:
  static std::vector<KVBuffer> caches_of(
      const std::vector<mx::array>& outputs, std::span<const AttentionRows> sequences
  ) {
    std::vector<KVBuffer> caches;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const KVFormat& format = sequences[i].cache.format;
      const bool codes = format.bits != 0;
      const size_t arrays = codes ? 3 : 1;
      const size_t first = 1 + i * 2 * arrays;
      caches.push_back(
          {kv_rows(outputs, first, codes), kv_rows(outputs, first + arrays, codes), format}
      );
    }
    return caches;
  }

  mx::array product(
      const PackedMatrix& packed, Activation activation, std::vector<mx::array> inputs
  ) const {
    const CpuMatrix& w = matrix_of(packed);
    const int rows = inputs[0].shape(0);
    return node(Linear{&w, activation, rows}, {rows, w.outputs()}, std::move(inputs));
  }

  template <typename Work>
  mx::array node(Work work, mx::Shape shape, std::vector<mx::array> inputs) const {
    return mx::array(
        std::move(shape),
        mx::float32,
        std::make_shared<Operation<Work>>(workspace_, std::move(work), std::vector<InPlace>()),
        std::move(inputs)
    );
  }

  template <typename Work>
  std::vector<mx::array> nodes(
      Work work,
      std::vector<mx::Shape> shapes,
      const std::vector<mx::Dtype>& dtypes,
      std::vector<mx::array> inputs,
      std::vector<InPlace> in_place = {}
  ) const {
    return mx::array::make_arrays(
        std::move(shapes),
        dtypes,
        std::make_shared<Operation<Work>>(workspace_, std::move(work), std::move(in_place)),
        std::move(inputs)
    );
  }

  std::shared_ptr<Workspace> workspace_;
  std::shared_ptr<WeightMemory> memory_;
};

}  // namespace

std::unique_ptr<const Ops> make_cpu_ops(Isa isa, int threads) {
  return std::make_unique<CpuOps>(isa, threads);
}

}  // namespace whimbrel::ops::cpu
