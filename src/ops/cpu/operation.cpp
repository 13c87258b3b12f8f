#include "ops/cpu/operation.h"

namespace whimbrel::ops::cpu {

namespace {

/// Copies elements of `bytes` bytes into row-major order.
struct StridedCopy {
  const std::byte* from;
  std::byte* to;
  size_t bytes;
  mx::Shape shape;
  mx::Strides strides;

  void operator()() const {
    std::byte* end = to;
    copy_axis(from, 0, end);
  }

  void copy_axis(const std::byte* start, size_t axis, std::byte*& end) const {
    if (axis == shape.size()) {
      std::memcpy(end, start, bytes);
      end += bytes;
      return;
    }
    for (int i = 0; i < shape[axis]; ++i) {
      copy_axis(start + i * strides[axis] * static_cast<int64_t>(bytes), axis + 1, end);
    }
  }
};

}  // namespace

mx::array row_major(const mx::array& array, mx::Stream stream) {
  if (array.flags().row_contiguous) {
    return array;
  }
  mx::array copy(array.shape(), array.dtype(), nullptr, {});
  copy.set_data(mx::allocator::malloc(copy.nbytes()));
  mx::cpu::CommandEncoder& encoder = mx::cpu::get_command_encoder(stream);
  encoder.dispatch(
      StridedCopy{
          array.data<std::byte>(),
          copy.data<std::byte>(),
          array.itemsize(),
          array.shape(),
          array.strides()
      }
  );
  encoder.add_temporary(copy);
  return copy;
}

}  // namespace whimbrel::ops::cpu
