#include "ops/cpu/product.h"

#include <algorithm>

namespace whimbrel::ops::cpu {

namespace {

constexpr size_t kCacheBytes = size_t{1} << 20;  // half of a core's second-level cache
constexpr int kMostRows = 256;
constexpr int kFewRows = 2 * kTileRows;
constexpr int kMostRoundedRows = 512;             // each panel is unpacked once for all of them
constexpr int kMostPanels = 16;                   // that they pass over before the next ones do
constexpr size_t kLeastBytes = size_t{64} << 10;  // of weights that a thread takes at a time

/// Products cut into tasks: pieces of all products for the first rows, then for the next.
class Tasks {
 public:
  Tasks(Context& context, const PreparedRows& x, std::span<const Product> products, int first_row)
      : context_(context),
        x_(x),
        products_(products),
        first_row_(first_row),
        rows_(rows_at_a_time(x)),
        panels_(panels_at_once()) {
    context_.pieces.clear();
    for (size_t i = 0; i < products.size(); ++i) {
      cut(static_cast<int>(i));
    }
    context_.reserve_tiles(2 * tile_floats(std::min(rows_, x.rows())));
  }

  int count() const { return static_cast<int>(context_.pieces.size()) * row_blocks(); }

  void run(int task, int thread) const {
    const auto pieces = static_cast<int>(context_.pieces.size());
    const Context::Piece& piece = context_.pieces[static_cast<size_t>(task % pieces)];
    run_panels(products_[static_cast<size_t>(piece.product)], task / pieces * rows_, piece, thread);
  }

 private:
  bool few_rows() const { return x_.rows() <= kFewRows; }

  int row_blocks() const { return (x_.rows() + rows_ - 1) / rows_; }

  int panels_at_once() const {
    if (few_rows()) {
      return kStreams;
    }
    return x_.rounds_for_codes() ? panels_for_rounded() : context_.kernels.product_panels;
  }

  /// As many as leave each thread a few tasks, where many are good.
  int panels_for_rounded() const {
    constexpr int kTasksAThread = 4;
    const int least = context_.kernels.product_panels;
    int panels = 0;
    for (const Product& product : products_) {
      panels += product.w->panels();
    }
    const int share = panels * row_blocks() / (kTasksAThread * context_.pool.threads());
    return std::clamp(share / least * least, least, kMostPanels);
  }

  size_t tile_floats(int rows) const {
    return static_cast<size_t>(x_.padded(rows)) * panels_ * kLanes;
  }

  void cut(int product) {
    const CpuMatrix& w = *products_[static_cast<size_t>(product)].w;
    for (int first = 0; first < w.panels();) {
      const int size = few_rows() ? stretch(w, w.panels() - first) : panels_;
      for (int i = 0; i < context_.pool.threads() && first < w.panels(); ++i) {
        const int end = std::min(w.panels(), first + size);
        context_.pieces.push_back({product, first, end});
        first = end;
      }
    }
  }

  /// With few rows the time is that of reading weights, which is best done in long stretches: each
  /// thread gets a third of its share, then a third of what is left, and so on, so that threads end
  /// together though one may have been held up.
  int stretch(const CpuMatrix& w, int left) const {
    const int threads = context_.pool.threads();
    const int share = left / (3 * threads);
    if (share >= kStreams) {
      return share / kStreams * kStreams;
    }
    const int step = context_.kernels.product_panels;
    const int streams = std::min(kStreams / 2, w.panels() / threads) / step * step;
    return std::max(streams, panels_a_task(context_.kernels, x_.rows(), w.panel_bytes()));
  }

  void run_panels(const Product& product, int row, const Context::Piece& piece, int thread) const {
    const int rows = std::min(rows_, x_.rows() - row);
    const int step = panels_;
    const size_t size = tile_floats(rows);
    float* tiles = context_.tiles[static_cast<size_t>(thread)].of<float>(2 * size);
    for (int panel = piece.first; panel < piece.end; panel += step) {
      const int panels = std::min(step, piece.end - panel);
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
    const size_t start = static_cast<size_t>(first_row_ + place.row) * stride + column;
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
  int first_row_;
  int rows_;
  int panels_;  // at a time
};

}  // namespace

int rows_at_a_time(const PreparedRows& x) {
  if (x.rounds_for_codes()) {
    return kMostRoundedRows;
  }
  const int fit = static_cast<int>(kCacheBytes / x.row_bytes()) / kTileRows * kTileRows;
  return std::clamp(fit, 4 * kTileRows, kMostRows);
}

int panels_a_task(const Kernels& kernels, int rows, size_t panel_bytes) {
  const int step = kernels.product_panels;
  if (rows > kFewRows) {
    return step;
  }
  return std::max(1, static_cast<int>(kLeastBytes / panel_bytes) / step) * step;
}

void multiply_all(
    Context& context, const PreparedRows& x, std::span<const Product> products, int first_row
) {
  const Tasks tasks(context, x, products, first_row);
  context.pool.parallel_for(tasks.count(), [&](int task, int thread) { tasks.run(task, thread); });
}

}  // namespace whimbrel::ops::cpu
