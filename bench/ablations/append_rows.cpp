#include "ablations/append_rows.h"

#include <mlx/backend/cpu/encoder.h>
#include <mlx/mlx.h>
#include <mlx/primitives.h>

#include <cstring>
#include <stdexcept>

namespace whimbrel::ablations {

namespace mx = mlx::core;

namespace {

/// Rows of one head that lie behind one another, and where each head's go.
struct RowCopy {
  size_t heads;
  size_t bytes;   // of a head's rows
  size_t stride;  // from head to head of the buffer, in bytes
  size_t first;   // where the rows begin in a head of the buffer, in bytes
};

void copy_rows(char* buffer, const char* rows, const RowCopy& copy) {
  for (size_t head = 0; head < copy.heads; ++head) {
    std::memcpy(buffer + head * copy.stride + copy.first, rows + head * copy.bytes, copy.bytes);
  }
}

class AppendRows : public mx::Primitive {
 public:
  AppendRows(mx::Stream stream, int first) : Primitive(stream), first_(first) {}

  const char* name() const override { return "AppendRows"; }

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    const mx::array& buffer = inputs[0];
    const mx::array& rows = inputs[1];
    if (!buffer.flags().row_contiguous || !rows.flags().row_contiguous) {
      throw std::logic_error("[AppendRows] got arrays that don't lie in one piece");
    }
    mx::array& out = outputs.front();
    out.copy_shared_buffer(buffer);
    const auto width = static_cast<size_t>(rows.shape(3)) * rows.itemsize();
    const RowCopy copy{
        .heads = static_cast<size_t>(rows.shape(1)),
        .bytes = static_cast<size_t>(rows.shape(2)) * width,
        .stride = static_cast<size_t>(buffer.shape(2)) * width,
        .first = static_cast<size_t>(first_) * width
    };
    auto& encoder = mx::cpu::get_command_encoder(stream());
    encoder.set_input_array(rows);
    encoder.set_output_array(out);
    encoder.dispatch(copy_rows, out.data<char>(), rows.data<char>(), copy);
  }

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::logic_error("[AppendRows] runs on the CPU's stream only");
  }

 private:
  int first_;
};

}  // namespace

mx::array append_rows(const mx::array& buffer, const mx::array& rows, int first) {
  const mx::Stream stream = mx::default_stream(mx::Device::cpu);
  return mx::array(
      buffer.shape(),
      buffer.dtype(),
      std::make_shared<AppendRows>(stream, first),
      {buffer, mx::contiguous(rows)}
  );
}

}  // namespace whimbrel::ablations
