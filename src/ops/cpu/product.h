#pragma once

#include <span>

#include "ops/cpu/context.h"
#include "ops/cpu/prepared_rows.h"

namespace whimbrel::ops::cpu {

/// Rows times a matrix, and what becomes of it: out = residual + activation(x W^T + bias), or with
/// a second matrix out = silu(x W^T + bias) * (x U^T + bias).
struct Product {
  const CpuMatrix* w = nullptr;
  const CpuMatrix* up = nullptr;
  Activation activation = Activation::none;
  const float* residual = nullptr;  // [rows][outputs]
  float* out = nullptr;             // [rows][outputs]
};

/// Runs the products of prepared rows on all threads. The first of them is row `first_row` of what
/// comes out and of residuals.
void multiply_all(
    Context& context, const PreparedRows& x, std::span<const Product> products, int first_row
);

/// Rows that are taken at a time, so that what a product reads of them at once stays in a core's
/// cache.
int rows_at_a_time(const PreparedRows& x);

/// Panels of `panel_bytes` that a thread takes at a time.
int panels_a_task(const Kernels& kernels, int rows, size_t panel_bytes);

}  // namespace whimbrel::ops::cpu
