#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ops/cpu/matrix.h"
#include "ops/cpu/operation.h"
#include "ops/cpu/prepared_rows.h"
#include "ops/cpu/workspace.h"
#include "ops/ops.h"

// The operations of a decoder layer: in parts for many rows, as one for few. Between two operations
// a core does nothing for a few microseconds, and MLX's thread takes time from the kernels'.

namespace whimbrel::ops::cpu {

// Operations hold their matrices, for they may outlive the model in the stream's queue.
using MatrixPtr = std::shared_ptr<const CpuMatrix>;

/// A norm whose weight, and bias where it has one, are an operation's inputs from `input` on.
struct InputNorm {
  size_t input = 0;
  bool has_bias = false;
  float eps = 0;

  RowNorm in(const Memory& memory) const;
};

/// Appends the norm's arrays to an operation's inputs.
InputNorm append_norm(std::vector<mx::array>& inputs, const Norm& norm);

/// Rows of one sequence and the room in its cache.
struct SequencePlan {
  int first = 0;
  int count = 0;
  int cached = 0;
  int capacity = 0;
  bool prefill = false;
};

/// An operation's attention. Inputs: weights of head norms where there are some; from
/// `first_sequence` on of each sequence cos, sin, keys and values, in codes the data, scales and
/// offsets of each. Outputs behind the first: each sequence's cache.
struct AttentionPlan {
  HeadShape shape = {};
  std::optional<InputNorm> q_norm = std::nullopt;
  std::optional<InputNorm> k_norm = std::nullopt;
  int group_size = 0;  // of the caches' codes; 0: none
  size_t first_sequence = 0;
  std::vector<SequencePlan> sequences = {};

  /// Memory of the rows of all sequences, each [rows][heads of its kind][head_dim].
  struct Rows {
    const float* q = nullptr;
    const float* k = nullptr;
    const float* v = nullptr;
    float* out = nullptr;
  };

  size_t q_width() const { return static_cast<size_t>(shape.heads) * shape.head_dim; }
  size_t kv_width() const { return static_cast<size_t>(shape.kv_heads) * shape.head_dim; }

  void run(Workspace& workspace, const Memory& memory, const Rows& rows) const;

 private:
  size_t arrays_a_cache() const { return group_size == 0 ? 2 : 6; }
  KVCache cache_at(const Memory& memory, size_t output) const;
};

/// Inputs q, k, v, then the plan's -> rows.
struct AttentionWork {
  static constexpr const char* kName = "Attention";
  AttentionPlan plan;

  static uint64_t weight_bytes() { return 0; }
  void operator()(Workspace& workspace, const Memory& memory) const;
};

/// Inputs x, the norm's, then the plan's -> the residual stream.
struct AttentionResidual {
  static constexpr const char* kName = "AttentionResidual";
  InputNorm norm;
  MatrixPtr q_proj;
  MatrixPtr k_proj;
  MatrixPtr v_proj;
  MatrixPtr o_proj;
  AttentionPlan plan;
  int rows;
  int prefill;

  uint64_t weight_bytes() const;
  void operator()(Workspace& workspace, const Memory& memory) const;
};

/// Inputs x and the norm's -> the residual stream.
struct SwigluResidual {
  static constexpr const char* kName = "SwigluResidual";
  InputNorm norm;
  MatrixPtr gate;
  MatrixPtr up;
  MatrixPtr down;
  int rows;
  int prefill;

  uint64_t weight_bytes() const { return gate->bytes() + up->bytes() + down->bytes(); }
  void operator()(Workspace& workspace, const Memory& memory) const;
};

/// Rows of a forward, those of prompts and pictures in front: x [rows][inputs of the matrices].
struct ForwardRows {
  const float* x = nullptr;
  int rows = 0;
  int prefill = 0;    // rows that may be rounded (ops::Activations)
  RowNorm norm = {};  // applied first
};

/// Products of one set of rows with all their matrices.
void run_products(Workspace& workspace, const ForwardRows& x, std::span<const Product> products);

}  // namespace whimbrel::ops::cpu
