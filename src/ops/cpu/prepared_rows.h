#pragma once

#include <array>
#include <span>

#include "ops/cpu/context.h"
#include "ops/cpu/matrix.h"

namespace whimbrel::ops::cpu {

/// A norm on raw memory: an RMS norm where there is no bias, else a layer norm.
struct RowNorm {
  const float* weight = nullptr;  // [width]; none: no norm
  const float* bias = nullptr;
  float eps = 0;
};

void apply_norm(const Kernels& kernels, const RowNorm& norm, const float* x, int width, float* y);

/// Where rows of activations come from: x [.][width]. With `order`, row i is x's row order[i], and
/// -1 stands for a row that nobody looks at.
struct RowSource {
  const float* x = nullptr;
  int rows = 0;
  int width = 0;
  RowNorm norm = {};  // applied first
  const int* order = nullptr;
  int row_step = 0;    // rows of a tile (SplitRows), always of integers; 0: what suits the rows
  bool exact = false;  // never rounded to bfloat16 or 8 bits
};

/// What rows are for matrices of codes: 16-bit integers, bfloat16 or 8-bit integers.
enum class CodesForm { split, bf16, int8 };

/// Some rows of a product with some panels of a matrix.
struct PanelProduct {
  const CpuMatrix* matrix = nullptr;
  int expert = 0;
  int panel = 0;  // the first one
  int panels = 1;
  int row = 0;  // the first one, a multiple of row_step()
  int rows = 0;
};

/// Rows of activations in the forms in which matrices take them; only the forms that the given
/// matrices need are made. The memory stays for the next time.
class PreparedRows {
 public:
  using Matrices = std::span<const CpuMatrix* const>;

  /// Replaces what was prepared before. The matrices are as wide as the rows.
  void prepare(Context& context, const RowSource& source, Matrices matrices);

  /// -> out [panels][padded(rows)][16].
  void multiply(const Kernels& kernels, const PanelProduct& product, float* out) const;

  int rows() const { return rows_; }
  /// Rows are taken in steps of this.
  int row_step() const { return row_step_; }
  /// Whether matrices of codes take rounded rows, of which as many as there are should pass over as
  /// many panels as there are: unpacking takes time.
  bool rounds_for_codes() const { return codes_form_ != CodesForm::split; }
  int padded(int rows) const { return (rows + row_step_ - 1) / row_step_ * row_step_; }

  /// Bytes of a row in its widest form: what should stay in a cache while panels pass.
  size_t row_bytes() const;

  /// Bytes of memory held.
  size_t bytes() const;

  /// Row `row` behind the norm.
  const float* floats(int row) const { return floats_ + row * stride_; }

 private:
  static constexpr std::array kGroupSizes = {32, 64, 128};

  /// Rows for codes in groups of one size, in one of the forms.
  struct Grouped {
    bool needed = false;
    SplitRows split = {};
    Bf16Rows bf16 = {};
    Int8Rows int8 = {};
    Scratch numbers = {};
    Scratch scales = {};  // and sums
  };

  void set_up(const Context& context, const RowSource& source, Matrices matrices);
  void set_up_codes(int group_size, int width);
  void set_up_split(Grouped& grouped, int group_size, int width);
  void set_up_bf16(Grouped& grouped, int group_size, int width);
  void set_up_int8(Grouped& grouped, int group_size, int width);
  void prepare_row(const Kernels& kernels, const RowSource& source, int row);
  void prepare_codes_row(const Kernels& kernels, const float* x, int row) const;
  /// Makes a row zero that fills up a tile.
  void clear_row(int row) const;
  void multiply_codes(const Kernels& kernels, const PanelProduct& product, float* out) const;
  void multiply_floats(const Kernels& kernels, const PanelProduct& product, float* out) const;
  void multiply_bf16(const Kernels& kernels, const PanelProduct& product, float* out) const;
  const Grouped& grouped(int group_size) const;
  bool multiplies_in_bf16(const Kernels& kernels, const FloatsLayout& layout) const;

  int rows_ = 0;
  int row_step_ = 1;
  bool may_round_ = false;
  CodesForm codes_form_ = CodesForm::split;
  size_t stride_ = 0;            // of rows of floats
  float* own_floats_ = nullptr;  // rows that differ from the source's
  const float* floats_ = nullptr;
  uint16_t* bf16_ = nullptr;  // rows in bfloat16, where a product takes them
  size_t bf16_stride_ = 0;
  Scratch float_memory_;
  Scratch bf16_memory_;
  std::array<Grouped, kGroupSizes.size()> groupeds_ = {};
};

}  // namespace whimbrel::ops::cpu
