#include "ops/cpu/cpu_ops.h"

#include <algorithm>

#include "ops/cpu/matrix.h"
#include "ops/cpu/operation.h"
#include "ops/cpu/product.h"
#include "ops/cpu/workspace.h"

namespace whimbrel::ops::cpu {

namespace {

using MatrixPtr = std::shared_ptr<const CpuMatrix>;

// Operations hold their matrices, for they may outlive the model in the stream's queue.

MatrixPtr matrix_of(const PackedMatrixPtr& packed) {
  return std::dynamic_pointer_cast<const CpuMatrix>(packed);
}

MatrixPtr matrix_of(const PackedMatrix& packed) {
  return dynamic_cast<const CpuMatrix&>(packed).shared_from_this();
}

/// A norm whose weight, and bias where it has one, are an operation's inputs from `input` on.
struct InputNorm {
  size_t input;
  bool has_bias;
  float eps;

  RowNorm in(const Memory& memory) const {
    return {memory.in<float>(input), has_bias ? memory.in<float>(input + 1) : nullptr, eps};
  }
};

InputNorm append_norm(std::vector<mx::array>& inputs, const Norm& norm) {
  const size_t first = inputs.size();
  if (const auto* rms = std::get_if<RmsNorm>(&norm)) {
    inputs.push_back(rms->weight);
    return {first, false, rms->eps};
  }
  const auto& layer = std::get<LayerNorm>(norm);
  inputs.push_back(layer.weight);
  inputs.push_back(layer.bias);
  return {first, true, layer.eps};
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
  MatrixPtr table;
  int rows;

  uint64_t weight_bytes() const { return table->panel_bytes() / kLanes * rows; }

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
  InputNorm norm;
  int rows;
  int width;

  static uint64_t weight_bytes() { return 0; }

  void operator()(Workspace& workspace, const Memory& memory) const {
    const auto* x = memory.in<float>(0);
    auto* out = memory.out<float>(0);
    const RowNorm row_norm = norm.in(memory);
    workspace.context.pool.parallel_for(rows, [&](int row, int) {
      const size_t start = static_cast<size_t>(row) * width;
      apply_norm(workspace.context.kernels, row_norm, x + start, width, out + start);
    });
  }
};

/// One product: inputs x and, for one that is added to something, the residual.
struct Linear {
  static constexpr const char* kName = "Linear";
  MatrixPtr w;
  Activation activation;
  int rows;

  uint64_t weight_bytes() const { return w->bytes(); }

  void operator()(Workspace& workspace, const Memory& memory) const {
    const CpuMatrix* const matrix = w.get();
    workspace.rows.prepare(
        workspace.context,
        {.x = memory.in<float>(0), .rows = rows, .width = w->inputs()},
        {&matrix, 1}
    );
    const Product product{
        .w = matrix,
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
  InputNorm norm;
  std::vector<MatrixPtr> ws;
  int rows;

  uint64_t weight_bytes() const {
    uint64_t bytes = 0;
    for (const MatrixPtr& w : ws) {
      bytes += w->bytes();
    }
    return bytes;
  }

  void operator()(Workspace& workspace, const Memory& memory) const {
    workspace.matrices.clear();
    workspace.products.clear();
    for (size_t i = 0; i < ws.size(); ++i) {
      workspace.matrices.push_back(ws[i].get());
      workspace.products.push_back({.w = ws[i].get(), .out = memory.out<float>(i)});
    }
    workspace.rows.prepare(
        workspace.context,
        {.x = memory.in<float>(0), .rows = rows, .width = ws[0]->inputs(), .norm = norm.in(memory)},
        workspace.matrices
    );
    multiply_all(workspace.context, workspace.rows, workspace.products);
  }
};

struct NormSwiglu {
  static constexpr const char* kName = "NormSwiglu";
  InputNorm norm;
  MatrixPtr gate;
  MatrixPtr up;
  int rows;

  uint64_t weight_bytes() const { return gate->bytes() + up->bytes(); }

  void operator()(Workspace& workspace, const Memory& memory) const {
    const CpuMatrix* const matrices[] = {gate.get(), up.get()};
    workspace.rows.prepare(
        workspace.context,
        {.x = memory.in<float>(0), .rows = rows, .width = gate->inputs(), .norm = norm.in(memory)},
        matrices
    );
    const Product product{.w = gate.get(), .up = up.get(), .out = memory.out<float>(0)};
    multiply_all(workspace.context, workspace.rows, {&product, 1});
  }
};

struct ExpertsResidual {
  static constexpr const char* kName = "ExpertsResidual";
  InputNorm norm;
  MatrixPtr router;
  MatrixPtr gate_proj;
  MatrixPtr up_proj;
  MatrixPtr down_proj;
  int per_token;
  bool renormalized;
  int rows;

  /// Of the router and of as many experts as the rows visit at most.
  uint64_t weight_bytes() const {
    const int visited = std::min(router->outputs(), per_token * rows);
    return router->bytes() + visited * (gate_proj->bytes() + up_proj->bytes() + down_proj->bytes());
  }

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
            .norm = norm.in(memory),
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

/// Inputs q, k, v, the weights of head norms where there are some, then of each sequence cos, sin,
/// keys and values; in codes the data, scales and offsets of each. Outputs: rows, then each
/// sequence's cache.
struct AttentionOperation {
  static constexpr const char* kName = "Attention";
  HeadShape shape;
  std::optional<InputNorm> q_norm;
  std::optional<InputNorm> k_norm;
  int group_size;
  std::vector<SequencePlan> sequences;

  static uint64_t weight_bytes() { return 0; }

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

  static HeadNorm head_norm(const std::optional<InputNorm>& norm, const Memory& memory) {
    return norm ? HeadNorm{norm->in(memory).weight, norm->eps} : HeadNorm{};
  }

  void operator()(Workspace& workspace, const Memory& memory) const {
    workspace.sequences.clear();
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto& [first, count, cached, capacity] = sequences[i];
      const size_t input = (q_norm ? 5 : 3) + i * (2 + arrays_a_cache());
      const size_t output = 1 + i * arrays_a_cache();
      workspace.sequences.push_back({
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
            .q_norm = head_norm(q_norm, memory),
            .k_norm = head_norm(k_norm, memory),
            .sequences = workspace.sequences,
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

  static uint64_t weight_bytes() { return 0; }

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
  mx::Dtype rounding() const override {
    return workspace_->context.kernels.bf16_product == nullptr ? mx::float32 : mx::bfloat16;
  }
  mx::Dtype kv_dtype() const override { return mx::bfloat16; }
  bool rotates_by_tables() const override { return true; }

  uint64_t weight_bytes(const StoredWeights& stored) const override { return stored.bytes; }

  // The outputs of one operation beside the backlog, and what kernels work in: numbers as measured
  // (tests/engine/memory_estimate_test.cpp).
  uint64_t layer_bytes(const LayerRows& layer) const override {
    constexpr uint64_t kWorkspace = 2'800'000;
    const uint64_t row =
        4 * layer.hidden + 2 * layer.attention + 2 * layer.feed_forward + layer.input;
    return Backlog::kMost + kWorkspace + sizeof(float) * layer.rows * row;
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
    MatrixPtr w = matrix_of(table);
    const int rows = static_cast<int>(ids.size());
    mx::Shape shape = {rows, w->inputs()};
    return node(Embed{std::move(w), rows}, std::move(shape), {mx::astype(ids, mx::int32)});
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
    std::vector<mx::array> inputs = {x};
    const InputNorm plan = append_norm(inputs, norm);
    return node(NormRows{plan, rows, width}, x.shape(), std::move(inputs));
  }

  std::vector<mx::array> norm_linears(
      const mx::array& x, const Norm& norm, std::span<const PackedMatrixPtr> ws
  ) const override {
    std::vector<mx::array> inputs = {x};
    NormLinears work{append_norm(inputs, norm), {}, x.shape(0)};
    std::vector<mx::Shape> shapes;
    for (const PackedMatrixPtr& w : ws) {
      work.ws.push_back(matrix_of(w));
      shapes.push_back({x.shape(0), work.ws.back()->outputs()});
    }
    const std::vector<mx::Dtype> dtypes(ws.size(), mx::float32);
    return nodes(std::move(work), shapes, dtypes, inputs);
  }

  mx::array norm_swiglu(
      const mx::array& x, const RmsNorm& norm, const PackedMatrix& gate, const PackedMatrix& up
  ) const override {
    std::vector<mx::array> inputs = {x};
    const InputNorm plan = append_norm(inputs, norm);
    NormSwiglu work{plan, matrix_of(gate), matrix_of(up), x.shape(0)};
    mx::Shape shape = {x.shape(0), work.gate->outputs()};
    return node(std::move(work), std::move(shape), std::move(inputs));
  }

  mx::array experts_residual(
      const mx::array& x, const RmsNorm& norm, const Experts& experts
  ) const override {
    std::vector<mx::array> inputs = {x};
    const InputNorm plan = append_norm(inputs, norm);
    return node(
        ExpertsResidual{
            plan,
            matrix_of(experts.router),
            matrix_of(experts.gate_proj),
            matrix_of(experts.up_proj),
            matrix_of(experts.down_proj),
            experts.per_token,
            experts.renormalized,
            x.shape(0)
        },
        x.shape(),
        std::move(inputs)
    );
  }

  AttentionResult attention(
      const Qkv& qkv,
      const HeadShape& shape,
      const std::optional<HeadNorms>& norms,
      std::span<const AttentionRows> sequences
  ) const override {
    std::vector<mx::array> inputs = {qkv.q, qkv.k, qkv.v};
    AttentionOperation work{shape, {}, {}, sequences[0].cache.format.group_size, {}};
    if (norms) {
      work.q_norm = append_norm(inputs, norms->q_norm);
      work.k_norm = append_norm(inputs, norms->k_norm);
    }
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
        nodes(std::move(work), shapes, dtypes, inputs, std::move(in_place));
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
    Linear work{matrix_of(packed), activation, inputs[0].shape(0)};
    mx::Shape shape = {work.rows, work.w->outputs()};
    return node(std::move(work), std::move(shape), std::move(inputs));
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
      const std::vector<mx::array>& inputs,
      std::vector<InPlace> in_place = {}
  ) const {
    return mx::array::make_arrays(
        std::move(shapes),
        dtypes,
        std::make_shared<Operation<Work>>(workspace_, std::move(work), std::move(in_place)),
        inputs
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
