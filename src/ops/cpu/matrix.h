#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "base/thread_pool.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/memory.h"
#include "ops/matrix.h"

namespace whimbrel::ops::cpu {

/// A matrix in panels, or the stacked matrices of a layer's experts one behind the other.
class CpuMatrix : public PackedMatrix, public std::enable_shared_from_this<CpuMatrix> {
 public:
  /// Packs what was loaded, from MLX's memory into `memory`. Throws Error(Fault::model) for bits
  /// and groups that no kernel knows.
  CpuMatrix(const Matrix& matrix, std::shared_ptr<WeightMemory> memory, ThreadPool& pool);

  const std::variant<CodesLayout, FloatsLayout>& layout() const { return layout_; }
  int outputs() const { return outputs_; }
  int inputs() const { return inputs_; }
  int panels() const;  // of one expert's matrix
  size_t panel_bytes() const;
  size_t bytes() const { return panels() * panel_bytes(); }  // of one expert's matrix

  /// Panel `index` of an expert's matrix; `expert` is 0 where the matrix isn't stacked.
  const std::byte* panel(int expert, int index) const;

  /// 16 numbers for a panel's outputs, or none where there is no bias.
  const float* bias(int panel) const;

  /// Row `output` as float32 -> y [inputs].
  void unpack_row(int output, float* y) const;

 private:
  void pack(const Matrix& matrix, ThreadPool& pool);

  std::shared_ptr<WeightMemory> memory_;
  std::variant<CodesLayout, FloatsLayout> layout_;
  int experts_ = 1;
  int outputs_ = 0;
  int inputs_ = 0;
  std::byte* panels_ = nullptr;
  std::vector<float> bias_;
};

}  // namespace whimbrel::ops::cpu
