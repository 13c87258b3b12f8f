#include "ops/cpu/product.h"

#include <algorithm>

namespace whimbrel::ops::cpu {

namespace {

constexpr size_t kCacheBytes = size_t{1} << 20;  // half of a core's second-level cache
constexpr int kMostRows = 256;
constexpr size_t kTaskBytes = size_t{64} << 10;  // of weights, where few rows wait for them

/// Products cut into tasks: all panels for the first rows, then for the next.
class Tasks {
 public:
  Tasks(Context& context, const PreparedRows& x, std::span<const Product> products)
      : context_(context), x_(x), products_(products), rows_(rows_at_a_time(x)) {
    for (const Product& product : products) {
      tasks_a_block_ += tasks_of(product);
    }
  }

  int count() const { return tasks_a_block_ * ((x_.rows() + rows_ - 1) / rows_); }

  void run(int task, int thread) const {
    const int row = task / tasks_a_block_ * rows_;
    int left = task % tasks_a_block_;
    for (const Product& product : products_) {
      if (left < tasks_of(product)) {
        run_panels(product, row, left * panels_of(product), thread);
        return;
      }
      left -= tasks_of(product);
    }
  }

 private:
  int panels_of(const Product& product) const {
    return panels_a_task(context_.kernels, x_.rows(), product.w->panel_bytes());
  }

  int tasks_of(const Product& product) const {
    return (product.w->panels() + panels_of(product) - 1) / panels_of(product);
  }

  void run_panels(const Product& product, int row, int first, int thread) const {
    const int end = std::min(product.w->panels(), first + panels_of(product));
    const int rows = std::min(rows_, x_.rows() - row);
    const int step = context_.kernels.product_panels;
    const size_t size = static_cast<size_t>(x_.padded(rows)) * step * kLanes;
    float* tiles = context_.tiles[static_cast<size_t>(thread)].of<float>(2 * size);
    for (int panel = first; panel < end; panel += step) {
      const int panels = std::min(step, end - panel);
      const auto multiply = [&](const CpuMatrix* matrix, float* out) {
        x_.multiply(context_.kernels, {matrix, 0, panel, panels, row, rows}, out);
      };
      multiply(product.w, tiles);
      if (product.up != nullptr) {
        multiply(product.up, tiles + size);
      }
      for (int i = 0; i < panels; ++i) {
        finish(product, {row, rows, panel + i}, tiles + i * size / step, size);
      }
    }
  }

  struct Place {
    int row;
    int rows;
    int panel;
  };

  /// `tile` of w's products, that of up's `up_tile` numbers behind it.
  void finish(const Product& product, const Place& place, const float* tile, size_t up_tile) const {
    const int column = place.panel * kLanes;
    const auto stride = static_cast<size_t>(product.w->outputs());
    const size_t start = place.row * stride + column;
    const int columns = std::min(kLanes, product.w->outputs() - column);
    if (product.up != nullptr) {
      context_.kernels.finish_swiglu({
          .gate = tile,
          .up = tile + up_tile,
          .rows = place.rows,
          .columns = columns,
          .gate_bias = product.w->bias(place.panel),
          .up_bias = product.up->bias(place.panel),
          .out = product.out + start,
          .out_stride = stride,
      });
      return;
    }
    context_.kernels.finish_tile({
        .tile = tile,
        .rows = place.rows,
        .columns = columns,
        .bias = product.w->bias(place.panel),
        .activation = product.activation,
        .residual = product.residual == nullptr ? nullptr : product.residual + start,
        .residual_stride = stride,
        .out = product.out + start,
        .out_stride = stride,
    });
  }

  Context& context_;
  const PreparedRows& x_;
  std::span<const Product> products_;
  int rows_;
  int tasks_a_block_ = 0;
};

}  // namespace

int rows_at_a_time(const PreparedRows& x) {
  const int fit = static_cast<int>(kCacheBytes / x.row_bytes()) / kTileRows * kTileRows;
  return std::clamp(fit, 4 * kTileRows, kMostRows);
}

int panels_a_task(const Kernels& kernels, int rows, size_t panel_bytes) {
  if (rows > 2 * kTileRows) {
    return kernels.product_panels;
  }
  const int step = kernels.product_panels;
  return std::max(1, static_cast<int>(kTaskBytes / panel_bytes) / step) * step;
}

void multiply_all(Context& context, const PreparedRows& x, std::span<const Product> products) {
  const Tasks tasks(context, x, products);
  context.pool.parallel_for(tasks.count(), [&](int task, int thread) { tasks.run(task, thread); });
}

}  // namespace whimbrel::ops::cpu
