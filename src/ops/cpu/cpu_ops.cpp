#include "ops/cpu/cpu_ops.h"

#include <algorithm>

#include "ops/cpu/layer_work.h"
#include "ops/cpu/matrix.h"
#include "ops/cpu/operation.h"
#include "ops/cpu/product.h"
#include "ops/cpu/workspace.h"

namespace whimbrel::ops::cpu {

namespace {

/// Rows that the operations of a layer are put together for. With more of them what lies between
/// two operations is large, and better in MLX's memory, which is given back.
constexpr int kFewRows = 16;

MatrixPtr matrix_of(const PackedMatrixPtr& packed) {
  return std::dynamic_pointer_cast<const CpuMatrix>(packed);
}

MatrixPtr matrix_of(const PackedMatrix& packed) {
  return dynamic_cast<const CpuMatrix&>(packed).shared_from_this();
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
  int prefill;

  uint64_t weight_bytes() const { return w->bytes(); }

  void operator()(Workspace& workspace, const Memory& memory) const {
    const Product product{
        .w = w.get(),
        .activation = activation,
        .residual = memory.inputs.size() > 1 ? memory.in<float>(1) : nullptr,
        .out = memory.out<float>(0),
    };
    run_products(
        workspace, {.x = memory.in<float>(0), .rows = rows, .prefill = prefill}, {&product, 1}
    );
  }
};

/// Several products of one normed input.
struct NormLinears {
  static constexpr const char* kName = "NormLinears";
  InputNorm norm;
  std::vector<MatrixPtr> ws;
  int rows;
  int prefill;

  uint64_t weight_bytes() const {
    uint64_t bytes = 0;
    for (const MatrixPtr& w : ws) {
      bytes += w->bytes();
    }
    return bytes;
  }

  void operator()(Workspace& workspace, const Memory& memory) const {
    workspace.products.clear();
    for (size_t i = 0; i < ws.size(); ++i) {
      workspace.products.push_back({.w = ws[i].get(), .out = memory.out<float>(i)});
    }
    run_products(
        workspace,
        {.x = memory.in<float>(0), .rows = rows, .prefill = prefill, .norm = norm.in(memory)},
        workspace.products
    );
  }
};

struct NormSwiglu {
  static constexpr const char* kName = "NormSwiglu";
  InputNorm norm;
  MatrixPtr gate;
  MatrixPtr up;
  int rows;
  int prefill;

  uint64_t weight_bytes() const { return gate->bytes() + up->bytes(); }

  void operator()(Workspace& workspace, const Memory& memory) const {
    const Product product{.w = gate.get(), .up = up.get(), .out = memory.out<float>(0)};
    run_products(
        workspace,
        {.x = memory.in<float>(0), .rows = rows, .prefill = prefill, .norm = norm.in(memory)},
        {&product, 1}
    );
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

/// Whole runs of each row are shared out.
struct Peaks {
  static constexpr const char* kName = "Peaks";
  int rows;
  int width;

  static uint64_t weight_bytes() { return 0; }

  void operator()(Workspace& workspace, const Memory& memory) const {
    constexpr int kRuns = 512;
    const int runs = (width + kPeakRun - 1) / kPeakRun;
    const int pieces = (runs + kRuns - 1) / kRuns;
    workspace.context.pool.parallel_for(rows * pieces, [&](int task, int) {
      const int first = task % pieces * kRuns;
      const size_t row = static_cast<size_t>(task) / static_cast<size_t>(pieces);
      workspace.context.kernels.peaks(
          memory.in<float>(0) + row * width + static_cast<size_t>(first) * kPeakRun,
          std::min(kRuns * kPeakRun, width - first * kPeakRun),
          memory.out<float>(0) + row * runs + first
      );
    });
  }
};

struct SegmentAttentionOperation {
  static constexpr const char* kName = "SegmentAttention";
  int heads;
  int head_dim;
  std::vector<int> cu_seqlens;
  RowRange queries;

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
            .first_query = queries.first,
            .queries = queries.count,
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
  CpuOps(Isa isa, int threads, const OpsOptions& options)
      : workspace_(std::make_shared<Workspace>(kernels_for(isa), threads, options.prefill_int8)),
        memory_(std::make_shared<WeightMemory>()) {}

  std::string_view name() const override { return "cpu"; }
  mx::Dtype dtype() const override { return mx::float32; }
  mx::Dtype rounding() const override {
    if (workspace_->context.int8_for_codes) {
      return mx::int8;
    }
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

  mx::array linear(const Activations& x, const PackedMatrix& w) const override {
    return product(w, Activation::none, x, {});
  }

  mx::array linear_residual(
      const Activations& x, const PackedMatrix& w, const mx::array& residual
  ) const override {
    return product(w, Activation::none, x, {residual});
  }

  mx::array linear_gelu(const Activations& x, const PackedMatrix& w, Gelu gelu) const override {
    return product(w, activation_of(gelu), x, {});
  }

  mx::array norm(const mx::array& x, const Norm& norm) const override {
    const int width = x.shape(-1);
    const int rows = static_cast<int>(x.size()) / width;
    std::vector<mx::array> inputs = {x};
    const InputNorm plan = append_norm(inputs, norm);
    return node(NormRows{plan, rows, width}, x.shape(), std::move(inputs));
  }

  std::vector<mx::array> norm_linears(
      const Activations& x, const Norm& norm, std::span<const PackedMatrixPtr> ws
  ) const override {
    const int rows = x.rows.shape(0);
    std::vector<mx::array> inputs = {x.rows};
    NormLinears work{append_norm(inputs, norm), {}, rows, x.prefill};
    std::vector<mx::Shape> shapes;
    for (const PackedMatrixPtr& w : ws) {
      work.ws.push_back(matrix_of(w));
      shapes.push_back({rows, work.ws.back()->outputs()});
    }
    const std::vector<mx::Dtype> dtypes(ws.size(), mx::float32);
    return nodes(std::move(work), shapes, dtypes, inputs);
  }

  mx::array norm_swiglu(
      const Activations& x, const RmsNorm& norm, const PackedMatrix& gate, const PackedMatrix& up
  ) const override {
    std::vector<mx::array> inputs = {x.rows};
    const InputNorm plan = append_norm(inputs, norm);
    NormSwiglu work{plan, matrix_of(gate), matrix_of(up), x.rows.shape(0), x.prefill};
    mx::Shape shape = {work.rows, work.gate->outputs()};
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
    AttentionNode node =
        plan_attention({qkv.q, qkv.k, qkv.v}, qkv.q.shape(), {shape, norms, sequences});
    AttentionWork work{std::move(node.plan)};
    return attended(std::move(work), std::move(node), sequences);
  }

  AttentionResult attention_residual(
      const mx::array& x,
      const AttentionWeights& weights,
      const HeadShape& shape,
      std::span<const AttentionRows> sequences
  ) const override {
    if (x.shape(0) > kFewRows) {
      return Ops::attention_residual(x, weights, shape, sequences);
    }
    std::vector<mx::array> inputs = {x};
    const InputNorm norm = append_norm(inputs, weights.norm);
    AttentionNode node =
        plan_attention(std::move(inputs), x.shape(), {shape, weights.head_norms, sequences});
    AttentionResidual work{
        norm,
        matrix_of(weights.qkv_proj[0]),
        matrix_of(weights.qkv_proj[1]),
        matrix_of(weights.qkv_proj[2]),
        matrix_of(weights.o_proj),
        std::move(node.plan),
        x.shape(0),
        prefill_rows(sequences)
    };
    return attended(std::move(work), std::move(node), sequences);
  }

  mx::array swiglu_residual(
      const Activations& x,
      const RmsNorm& norm,
      const PackedMatrix& gate,
      const PackedMatrix& up,
      const PackedMatrix& down
  ) const override {
    const int rows = x.rows.shape(0);
    if (rows > kFewRows) {
      return Ops::swiglu_residual(x, norm, gate, up, down);
    }
    std::vector<mx::array> inputs = {x.rows};
    const InputNorm plan = append_norm(inputs, norm);
    return node(
        SwigluResidual{plan, matrix_of(gate), matrix_of(up), matrix_of(down), rows, x.prefill},
        x.rows.shape(),
        std::move(inputs)
    );
  }

  mx::array peaks(const mx::array& logits) const override {
    const int runs = (logits.shape(1) + kPeakRun - 1) / kPeakRun;
    return node(Peaks{logits.shape(0), logits.shape(1)}, {logits.shape(0), runs}, {logits});
  }

  mx::array segment_attention(
      const mx::array& qkv,
      int heads,
      const RopeTables& rope,
      std::span<const int> cu_seqlens,
      const RowRange& queries
  ) const override {
    const int width = qkv.shape(-1) / 3;
    return node(
        SegmentAttentionOperation{
            heads, width / heads, std::vector<int>(cu_seqlens.begin(), cu_seqlens.end()), queries
        },
        {queries.count, width},
        {qkv, rope.cos, rope.sin}
    );
  }

  int64_t pairs_of_a_pause() const override {
    return (int64_t{4} << 20) * workspace_->context.pool.threads();
  }

 private:
  /// What an attention is made of, beside the rows it comes from.
  struct AttentionParts {
    const HeadShape& shape;
    const std::optional<HeadNorms>& norms;
    std::span<const AttentionRows> sequences;
  };

  struct AttentionNode {
    AttentionPlan plan = {};
    std::vector<mx::array> inputs = {};
    std::vector<mx::Shape> shapes = {};  // of the outputs
    std::vector<mx::Dtype> dtypes = {};
    std::vector<InPlace> in_place = {};
  };

  /// `inputs` are those in front of the attention's, `output` is the shape of the first output.
  static AttentionNode plan_attention(
      std::vector<mx::array> inputs, mx::Shape output, const AttentionParts& parts
  ) {
    AttentionNode node;
    node.inputs = std::move(inputs);
    node.shapes.push_back(std::move(output));
    node.dtypes.push_back(mx::float32);
    node.plan.shape = parts.shape;
    node.plan.group_size = parts.sequences[0].cache.format.group_size;
    if (parts.norms) {
      node.plan.q_norm = append_norm(node.inputs, parts.norms->q_norm);
      node.plan.k_norm = append_norm(node.inputs, parts.norms->k_norm);
    }
    node.plan.first_sequence = node.inputs.size();
    for (const AttentionRows& sequence : parts.sequences) {
      append_sequence(node, sequence);
    }
    return node;
  }

  static void append_sequence(AttentionNode& node, const AttentionRows& sequence) {
    const int capacity = sequence.cache.keys.data.shape(2);
    node.plan.sequences.push_back(
        {sequence.first, sequence.count, sequence.cached, capacity, sequence.prefill}
    );
    node.inputs.push_back(sequence.rope.tables->cos);
    node.inputs.push_back(sequence.rope.tables->sin);
    const size_t first = node.inputs.size();
    append_arrays(node.inputs, sequence.cache.keys);
    append_arrays(node.inputs, sequence.cache.values);
    for (size_t i = first; i < node.inputs.size(); ++i) {
      node.in_place.push_back({i, node.shapes.size()});
      node.shapes.push_back(node.inputs[i].shape());
      node.dtypes.push_back(node.inputs[i].dtype());
    }
  }

  template <typename Work>
  AttentionResult attended(
      Work work, AttentionNode node, std::span<const AttentionRows> sequences
  ) const {
    const std::vector<mx::array> outputs = nodes(
        std::move(work), std::move(node.shapes), node.dtypes, node.inputs, std::move(node.in_place)
    );
    return {outputs[0], caches_of(outputs, sequences)};
  }

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
      const PackedMatrix& packed,
      Activation activation,
      const Activations& x,
      const std::optional<mx::array>& residual
  ) const {
    Linear work{matrix_of(packed), activation, x.rows.shape(0), x.prefill};
    std::vector<mx::array> inputs = {x.rows};
    if (residual) {
      inputs.push_back(*residual);
    }
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

std::unique_ptr<const Ops> make_cpu_ops(Isa isa, int threads, const OpsOptions& options) {
  return std::make_unique<CpuOps>(isa, threads, options);
}

}  // namespace whimbrel::ops::cpu
