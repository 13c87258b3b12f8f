#pragma once

#include <vector>

#include "ops/cpu/context.h"
#include "ops/cpu/prepared_rows.h"
#include "ops/cpu/product.h"

namespace whimbrel::ops::cpu {

/// The feed-forward of a mixture-of-experts layer: out = x + the weighted sum of the chosen
/// experts' SwiGLU of norm(x).
struct ExpertsProduct {
  const CpuMatrix* router = nullptr;  // [experts, width]
  const CpuMatrix* gate_proj = nullptr;
  const CpuMatrix* up_proj = nullptr;
  const CpuMatrix* down_proj = nullptr;
  int per_token = 0;
  bool renormalized = false;
  RowNorm norm = {};
  const float* x = nullptr;  // [rows][width]
  int rows = 0;
  float* out = nullptr;  // [rows][width]
};

/// Memory for what is computed in between; it stays for the next time.
struct ExpertsWorkspace {
  /// A token's row at one of its experts.
  struct Visit {
    int expert;
    int row;
    float weight;
  };

  /// The rows of an expert among all experts' rows.
  struct Visitors {
    int expert;
    int first;
    int count;
  };

  PreparedRows routed;
  PreparedRows input;   // rows in the experts' order, each as often as it has experts
  PreparedRows hidden;  // behind SwiGLU, in the same order
  Scratch logits;
  Scratch activations;
  std::vector<Visit> visits;
  std::vector<int> order;  // row of each slot, -1 for one that fills up a tile
  std::vector<int> slots;  // the slots themselves, -1 likewise
  std::vector<float> weights;
  std::vector<Visitors> visitors;
  std::vector<int> ranking;

  /// Bytes of the large parts.
  size_t bytes() const {
    return routed.bytes() + input.bytes() + hidden.bytes() + logits.bytes() + activations.bytes();
  }
};

/// Reads the chosen experts' weights only.
void run_experts(Context& context, ExpertsWorkspace& workspace, const ExpertsProduct& product);

}  // namespace whimbrel::ops::cpu
