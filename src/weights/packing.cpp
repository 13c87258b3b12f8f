#include "weights/packing.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "weights/quote.h"

namespace whimbrel {

namespace {

constexpr int64_t kWordBits = 32;

/// [leading..., rows, any].
bool has_rows(const TensorInfo& tensor, const std::vector<int64_t>& leading, int64_t rows) {
  std::vector<int64_t> expected = leading;
  expected.push_back(rows);
  return tensor.shape.size() == expected.size() + 1 && tensor.shape.back() > 0 &&
         std::equal(expected.begin(), expected.end(), tensor.shape.begin());
}

std::optional<Packing> packing_by_shape(
    const TensorInfo& weight, const TensorInfo& scales, int64_t columns
) {
  const int64_t bits_of_row = weight.shape.back() * kWordBits;
  const int64_t groups = scales.shape.back();
  if (bits_of_row % columns != 0 || columns % groups != 0) {
    return std::nullopt;
  }
  const int64_t bits = bits_of_row / columns;
  const int64_t group_size = columns / groups;
  if (!is_affine_bits(bits) || !is_affine_group_size(group_size)) {
    return std::nullopt;
  }
  return Packing{.bits = static_cast<int>(bits), .group_size = static_cast<int>(group_size)};
}

std::string rows_text(const std::vector<int64_t>& leading, int64_t rows) {
  std::vector<int64_t> axes = leading;
  axes.push_back(rows);
  return fmt::format("{}", fmt::join(axes, ", "));
}

[[noreturn]] void wrong_shapes(
    const PackedTensors& tensors,
    const std::vector<int64_t>& leading,
    int64_t rows,
    int64_t columns,
    std::string_view where
) {
  throw Error(
      Fault::model,
      where,
      "tensor {0}: got packed shape {1} with scales {2}, expected [{3}, {4} * bits / 32] and "
      "[{3}, {4} / group_size] with 2, 3, 4, 5, 6 or 8 bits and groups of 32, 64 or 128",
      quote(tensors.weight.name),
      shape_text(tensors.weight.shape),
      shape_text(tensors.scales.shape),
      rows_text(leading, rows),
      columns
  );
}

void require_stated(
    const TensorInfo& weight,
    const Packing& found,
    const std::optional<QuantizationConfig>& stated,
    std::string_view where
) {
  const std::string got = fmt::format("got {} bits in groups of {}", found.bits, found.group_size);
  if (!stated) {
    throw Error(
        Fault::model,
        where,
        "tensor {}: {}, expected no quantisation, as config.json says of this module",
        quote(weight.name),
        got
    );
  }
  const int bits = stated->bits.value_or(found.bits);
  const int group_size = stated->group_size.value_or(found.group_size);
  if (bits != found.bits || group_size != found.group_size) {
    throw Error(
        Fault::model,
        where,
        "tensor {}: {}, expected {} bits in groups of {}, as config.json says of this module",
        quote(weight.name),
        got,
        bits,
        group_size
    );
  }
}

void require_dtypes(const PackedTensors& tensors, std::string_view where) {
  if (tensors.weight.dtype != StoredDtype::u32) {
    throw Error(
        Fault::model,
        where,
        "tensor {}: got dtype {} beside scales, expected packed U32",
        quote(tensors.weight.name),
        dtype_name(tensors.weight.dtype)
    );
  }
  require_float(tensors.scales, where);
  if (tensors.biases.dtype != tensors.scales.dtype ||
      tensors.biases.shape != tensors.scales.shape) {
    throw Error(
        Fault::model,
        where,
        "tensor {}: got {} of shape {}, expected {} of shape {}, like its scales",
        quote(tensors.biases.name),
        dtype_name(tensors.biases.dtype),
        shape_text(tensors.biases.shape),
        dtype_name(tensors.scales.dtype),
        shape_text(tensors.scales.shape)
    );
  }
}

}  // namespace

void require_float(const TensorInfo& tensor, std::string_view where) {
  if (tensor.dtype != StoredDtype::bf16 && tensor.dtype != StoredDtype::f16 &&
      tensor.dtype != StoredDtype::f32) {
    throw Error(
        Fault::model,
        where,
        "tensor {}: got dtype {}, expected BF16, F16 or F32",
        quote(tensor.name),
        dtype_name(tensor.dtype)
    );
  }
}

Packing check_packing(
    const PackedTensors& tensors,
    const std::vector<int64_t>& leading,
    int64_t rows,
    int64_t columns,
    const std::optional<QuantizationConfig>& stated,
    std::string_view where
) {
  require_dtypes(tensors, where);
  std::optional<Packing> packing;
  if (has_rows(tensors.weight, leading, rows) && has_rows(tensors.scales, leading, rows)) {
    packing = packing_by_shape(tensors.weight, tensors.scales, columns);
  }
  if (!packing) {
    wrong_shapes(tensors, leading, rows, columns, where);
  }
  require_stated(tensors.weight, *packing, stated, where);
  return *packing;
}

}  // namespace whimbrel
