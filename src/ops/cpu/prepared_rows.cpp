#include "ops/cpu/prepared_rows.h"

#include <algorithm>
#include <cstring>

namespace whimbrel::ops::cpu {

namespace {

constexpr int kRowsAThread = 4;

/// An odd number of cache lines: rows that lie a power of two apart, as a tile loads them, would
/// share few of a cache's sets.
size_t spread_stride(size_t numbers) {
  constexpr size_t kLine = 64 / sizeof(uint16_t);
  return ((numbers + kLine - 1) / kLine | 1) * kLine;
}

int tile_rows_for(const Kernels& kernels, int rows) {
  if (rows >= kernels.fewest_tile_rows) {
    return kTileRows;
  }
  return rows >= 3 ? 4 : std::max(1, rows);
}

const FloatsLayout* floats_layout(const CpuMatrix& matrix) {
  return std::get_if<FloatsLayout>(&matrix.layout());
}

void clear_split_row(const SplitRows& rows, int row) {
  const auto group_size = static_cast<size_t>(rows.group_size);
  for (int group = 0; group < rows.groups; ++group) {
    int8_t* hi = rows.hi(group, row);
    std::memset(hi, 0, group_size);
    std::memset(hi + rows.tile_rows * group_size, 0, group_size);
    const size_t place = static_cast<size_t>(group) * rows.padded_rows() + row;
    rows.scales[place] = 0;
    rows.sums[place] = 0;
  }
}

void clear_bf16_row(const Bf16Rows& rows, int row) {
  constexpr size_t kNumbers = kBf16TileInputs;
  for (int part = 0; part < rows.width() / kBf16TileInputs; ++part) {
    uint16_t* tile = rows.tile(part, row / kRoundedTileRows);
    std::fill_n(
        tile + static_cast<size_t>(row % kRoundedTileRows) * kNumbers, kNumbers, uint16_t{0}
    );
  }
  std::fill_n(rows.sums_of(row), rows.sums_width(), uint16_t{0});
}

void clear_int8_row(const Int8Rows& rows, int row) {
  const auto inputs = static_cast<size_t>(rows.part_inputs());
  for (int part = 0; part < rows.parts(); ++part) {
    int8_t* tile = rows.tile(part, row / kRoundedTileRows);
    std::memset(tile + row % kRoundedTileRows * inputs, 0, inputs);
  }
  for (int group = 0; group < rows.groups; ++group) {
    rows.scales_of(group)[row] = 0;
    rows.sums_of(group)[row] = 0;
  }
}

CodesForm codes_form(const Context& context, bool may_round) {
  if (!may_round) {
    return CodesForm::split;
  }
  if (context.int8_for_codes) {
    return CodesForm::int8;
  }
  return context.kernels.codes_bf16_product != nullptr ? CodesForm::bf16 : CodesForm::split;
}

}  // namespace

void apply_norm(const Kernels& kernels, const RowNorm& norm, const float* x, int width, float* y) {
  if (norm.bias != nullptr) {
    kernels.layer_norm(x, norm.weight, norm.bias, norm.eps, width, y);
  } else {
    kernels.rms_norm(x, norm.weight, norm.eps, width, y);
  }
}

bool PreparedRows::multiplies_in_bf16(const Kernels& kernels, const FloatsLayout& layout) const {
  return may_round_ && kernels.bf16_product != nullptr && layout.type == Float::bf16;
}

void PreparedRows::prepare(Context& context, const RowSource& source, Matrices matrices) {
  set_up(context, source, matrices);
  const int rows = padded(rows_);
  if (rows <= kRowsAThread) {
    for (int row = 0; row < rows; ++row) {
      prepare_row(context.kernels, source, row);
    }
    return;
  }
  const int tasks = (rows + kRowsAThread - 1) / kRowsAThread;
  context.pool.parallel_for(tasks, [&](int task, int) {
    const int end = std::min(rows, (task + 1) * kRowsAThread);
    for (int row = task * kRowsAThread; row < end; ++row) {
      prepare_row(context.kernels, source, row);
    }
  });
}

void PreparedRows::set_up(const Context& context, const RowSource& source, Matrices matrices) {
  const Kernels& kernels = context.kernels;
  rows_ = source.rows;
  const bool any_codes = std::ranges::any_of(matrices, [](const CpuMatrix* matrix) {
    return floats_layout(*matrix) == nullptr;
  });
  may_round_ = !source.exact;
  codes_form_ = codes_form(context, any_codes && may_round_);
  row_step_ = source.row_step != 0 ? source.row_step
              : rounds_for_codes() ? kRoundedTileRows
                                   : tile_rows_for(kernels, rows_);
  int padded_width = source.width;
  bool in_bf16 = false;
  for (Grouped& grouped : groupeds_) {
    grouped.needed = false;
  }
  for (const CpuMatrix* matrix : matrices) {
    if (const FloatsLayout* layout = floats_layout(*matrix)) {
      padded_width = std::max(padded_width, layout->width);
      in_bf16 = in_bf16 || multiplies_in_bf16(kernels, *layout);
    } else {
      set_up_codes(std::get<CodesLayout>(matrix->layout()).group_size, source.width);
    }
  }
  const bool same =
      source.norm.weight == nullptr && source.order == nullptr && padded_width == source.width;
  stride_ = static_cast<size_t>(padded_width);
  const size_t numbers = static_cast<size_t>(rows_) * stride_;
  own_floats_ = same ? nullptr : float_memory_.of<float>(numbers);
  floats_ = same ? source.x : own_floats_;
  bf16_stride_ = spread_stride(stride_);
  bf16_ = in_bf16 ? bf16_memory_.of<uint16_t>(static_cast<size_t>(rows_) * bf16_stride_) : nullptr;
}

void PreparedRows::set_up_codes(int group_size, int width) {
  const auto place = std::ranges::find(kGroupSizes, group_size) - kGroupSizes.begin();
  Grouped& grouped = groupeds_[static_cast<size_t>(place)];
  grouped.needed = true;
  switch (codes_form_) {
    case CodesForm::split:
      return set_up_split(grouped, group_size, width);
    case CodesForm::bf16:
      return set_up_bf16(grouped, group_size, width);
    case CodesForm::int8:
      return set_up_int8(grouped, group_size, width);
  }
}

void PreparedRows::set_up_split(Grouped& grouped, int group_size, int width) {
  SplitRows& rows = grouped.split;
  rows.rows = rows_;
  rows.tile_rows = row_step_;
  rows.tiles = padded(rows_) / row_step_;
  rows.group_size = group_size;
  rows.groups = width / group_size;
  rows.codes = grouped.numbers.of<int8_t>(rows.code_bytes());
  const size_t scales = static_cast<size_t>(rows.groups) * rows.padded_rows();
  rows.scales = grouped.scales.of<float>(2 * scales);
  rows.sums = rows.scales + scales;
}

void PreparedRows::set_up_bf16(Grouped& grouped, int group_size, int width) {
  Bf16Rows& rows = grouped.bf16;
  rows.tiles = padded(rows_) / kRoundedTileRows;
  rows.group_size = group_size;
  rows.groups = width / group_size;
  rows.numbers = grouped.numbers.of<uint16_t>(rows.number_count());
  rows.sums = grouped.scales.of<uint16_t>(rows.sum_count());
}

void PreparedRows::set_up_int8(Grouped& grouped, int group_size, int width) {
  Int8Rows& rows = grouped.int8;
  rows.tiles = padded(rows_) / kRoundedTileRows;
  rows.group_size = group_size;
  rows.groups = width / group_size;
  rows.numbers = grouped.numbers.of<int8_t>(rows.number_count());
  rows.scales = grouped.scales.of<float>(2 * rows.scale_count());
  rows.sums = rows.scales + rows.scale_count();
}

void PreparedRows::prepare_row(const Kernels& kernels, const RowSource& source, int row) {
  const bool fills_up = row >= rows_ || (source.order != nullptr && source.order[row] < 0);
  if (fills_up) {
    clear_row(row);
    return;
  }
  const int from = source.order == nullptr ? row : source.order[row];
  const float* x = source.x + static_cast<size_t>(from) * source.width;
  if (own_floats_ != nullptr) {
    float* y = own_floats_ + row * stride_;
    if (source.norm.weight != nullptr) {
      apply_norm(kernels, source.norm, x, source.width, y);
    } else {
      std::memcpy(y, x, static_cast<size_t>(source.width) * sizeof(float));
    }
    std::fill(y + source.width, y + stride_, 0.0F);
    x = y;
  }
  prepare_codes_row(kernels, x, row);
  if (bf16_ != nullptr) {
    kernels.to_bf16(x, stride_, bf16_ + row * bf16_stride_);
  }
}

void PreparedRows::prepare_codes_row(const Kernels& kernels, const float* x, int row) const {
  for (const Grouped& grouped : groupeds_) {
    if (!grouped.needed) {
      continue;
    }
    switch (codes_form_) {
      case CodesForm::split:
        kernels.split_row(x, grouped.split, row);
        break;
      case CodesForm::bf16:
        kernels.round_row(x, grouped.bf16, row);
        break;
      case CodesForm::int8:
        kernels.int8_row(x, grouped.int8, row);
        break;
    }
  }
}

void PreparedRows::clear_row(int row) const {
  for (const Grouped& grouped : groupeds_) {
    if (!grouped.needed) {
      continue;
    }
    switch (codes_form_) {
      case CodesForm::split:
        clear_split_row(grouped.split, row);
        break;
      case CodesForm::bf16:
        clear_bf16_row(grouped.bf16, row);
        break;
      case CodesForm::int8:
        clear_int8_row(grouped.int8, row);
        break;
    }
  }
}

const PreparedRows::Grouped& PreparedRows::grouped(int group_size) const {
  const auto place = std::ranges::find(kGroupSizes, group_size) - kGroupSizes.begin();
  return groupeds_[static_cast<size_t>(place)];
}

void PreparedRows::multiply(const Kernels& kernels, const PanelProduct& product, float* out) const {
  const CpuMatrix& matrix = *product.matrix;
  if (const FloatsLayout* layout = floats_layout(matrix)) {
    if (multiplies_in_bf16(kernels, *layout)) {
      multiply_bf16(kernels, product, out);
    } else {
      multiply_floats(kernels, product, out);
    }
    return;
  }
  multiply_codes(kernels, product, out);
}

void PreparedRows::multiply_codes(
    const Kernels& kernels, const PanelProduct& product, float* out
) const {
  const auto& layout = std::get<CodesLayout>(product.matrix->layout());
  const Grouped& x = grouped(layout.group_size);
  const std::byte* panel = product.matrix->panel(product.expert, product.panel);
  const int first_tile = product.row / row_step_;
  const int tiles = padded(product.rows) / row_step_;
  switch (codes_form_) {
    case CodesForm::split:
      return kernels.codes_product(
          {panel, product.panels, layout, &x.split, first_tile, tiles, product.rows, out}
      );
    case CodesForm::bf16:
      return kernels.codes_bf16_product(
          {panel, product.panels, layout, &x.bf16, first_tile, tiles, out}
      );
    case CodesForm::int8:
      return kernels.codes_int8_product(
          {panel, product.panels, layout, &x.int8, first_tile, tiles, out}
      );
  }
}

void PreparedRows::multiply_floats(
    const Kernels& kernels, const PanelProduct& product, float* out
) const {
  // One panel at a time: the kernel's rows lie without gaps.
  const size_t apart = static_cast<size_t>(padded(product.rows)) * kLanes;
  for (int i = 0; i < product.panels; ++i) {
    kernels.floats_product({
        .panel = product.matrix->panel(product.expert, product.panel + i),
        .panels = 1,
        .layout = *floats_layout(*product.matrix),
        .x = floats(product.row),
        .x_stride = stride_,
        .rows = product.rows,
        .out = out + i * apart,
    });
  }
}

void PreparedRows::multiply_bf16(
    const Kernels& kernels, const PanelProduct& product, float* out
) const {
  const bool together = padded(product.rows) == product.rows;
  const int step = together ? product.panels : 1;
  const size_t apart = static_cast<size_t>(padded(product.rows)) * kLanes;
  for (int i = 0; i < product.panels; i += step) {
    kernels.bf16_product({
        .panel = product.matrix->panel(product.expert, product.panel + i),
        .panels = step,
        .width = floats_layout(*product.matrix)->width,
        .x = bf16_ + product.row * bf16_stride_,
        .x_stride = bf16_stride_,
        .rows = product.rows,
        .out = out + i * apart,
    });
  }
}

size_t PreparedRows::bytes() const {
  size_t bytes = float_memory_.bytes() + bf16_memory_.bytes();
  for (const Grouped& grouped : groupeds_) {
    bytes += grouped.numbers.bytes() + grouped.scales.bytes();
  }
  return bytes;
}

size_t PreparedRows::row_bytes() const {
  const bool codes = std::ranges::any_of(groupeds_, &Grouped::needed);
  return stride_ * (codes || bf16_ != nullptr ? sizeof(uint16_t) : sizeof(float));
}

}  // namespace whimbrel::ops::cpu
