#include "weights/experts.h"

#include <mlx/ops.h>

#include "weights/quote.h"

namespace whimbrel {

namespace {

StoredExperts take_stacked(
    Checkpoint& checkpoint, const std::string& module, const ExpertsShape& shape
) {
  const auto [count, hidden, intermediate] = shape;
  const auto take = [&](const char* name, int64_t rows, int64_t columns) {
    return checkpoint.take_stacked_matrix(module + name, count, rows, columns);
  };
  return {
      .gate_proj = take(".gate_proj", intermediate, hidden),
      .up_proj = take(".up_proj", intermediate, hidden),
      .down_proj = take(".down_proj", hidden, intermediate),
  };
}

mx::Shape as_shape(int64_t count, int64_t rows, int64_t columns) {
  return {static_cast<int>(count), static_cast<int>(rows), static_cast<int>(columns)};
}

/// Both orders of axes are in use, and shapes decide: of the two tensors at least one isn't square.
bool outputs_first(
    const Checkpoint& checkpoint, const std::string& module, const ExpertsShape& shape
) {
  const auto [count, hidden, intermediate] = shape;
  const auto stored_as = [&](const char* name, int64_t rows, int64_t columns) {
    const TensorInfo* tensor = checkpoint.find(module + name);
    return tensor != nullptr && tensor->shape == std::vector<int64_t>{count, rows, columns};
  };
  return stored_as(".gate_up_proj", 2 * intermediate, hidden) &&
         stored_as(".down_proj", hidden, intermediate);
}

/// [experts, first + rows, columns] -> [experts, rows, columns].
mx::array rows_from(const mx::array& stacked, int first, int rows) {
  const mx::Shape start = {0, first, 0};
  const mx::Shape stop = {stacked.shape(0), first + rows, stacked.shape(2)};
  return mx::slice(stacked, start, stop);
}

StoredExperts take_fused(
    Checkpoint& checkpoint, const std::string& module, const ExpertsShape& shape
) {
  const auto [count, hidden, intermediate] = shape;
  const bool straight = outputs_first(checkpoint, module, shape);
  const auto take = [&](const char* name, int64_t rows, int64_t columns) {
    return straight
               ? checkpoint.take(module + name, as_shape(count, rows, columns))
               : mx::swapaxes(checkpoint.take(module + name, as_shape(count, columns, rows)), 1, 2);
  };
  const mx::array gate_up = take(".gate_up_proj", 2 * intermediate, hidden);
  const int half = static_cast<int>(intermediate);
  return {
      .gate_proj = {.weight = rows_from(gate_up, 0, half)},
      .up_proj = {.weight = rows_from(gate_up, half, half)},
      .down_proj = {.weight = take(".down_proj", hidden, intermediate)},
  };
}

/// Experts that are packed alike, each with a tensor of its own, put into one.
class Stack {
 public:
  void add(StoredMatrix matrix, const std::string& module) {
    if (!weights_.empty() && (matrix.bits != bits_ || matrix.group_size != group_size_)) {
      throw Error(
          Fault::model,
          module,
          "got {} bits in groups of {}, expected {} in groups of {} like the experts before it",
          matrix.bits,
          matrix.group_size,
          bits_,
          group_size_
      );
    }
    bits_ = matrix.bits;
    group_size_ = matrix.group_size;
    weights_.push_back(std::move(matrix.weight));
    if (matrix.scales) {
      scales_.push_back(*std::move(matrix.scales));
      biases_.push_back(*std::move(matrix.biases));
    }
  }

  StoredMatrix stacked() const {
    StoredMatrix matrix{.weight = mx::stack(weights_), .bits = bits_, .group_size = group_size_};
    if (!scales_.empty()) {
      matrix.scales = mx::stack(scales_);
      matrix.biases = mx::stack(biases_);
    }
    return matrix;
  }

 private:
  std::vector<mx::array> weights_;
  std::vector<mx::array> scales_;
  std::vector<mx::array> biases_;
  int bits_ = 0;
  int group_size_ = 0;
};

StoredExperts take_single(
    Checkpoint& checkpoint, const std::string& module, const ExpertsShape& shape
) {
  const auto stack = [&](const char* name, int64_t rows, int64_t columns) {
    Stack all;
    for (int64_t expert = 0; expert < shape.num_experts; ++expert) {
      const std::string path = fmt::format("{}.{}.{}", module, expert, name);
      all.add(checkpoint.take_matrix(path, rows, columns), path);
    }
    return all.stacked();
  };
  return {
      .gate_proj = stack("gate_proj", shape.intermediate_size, shape.hidden_size),
      .up_proj = stack("up_proj", shape.intermediate_size, shape.hidden_size),
      .down_proj = stack("down_proj", shape.hidden_size, shape.intermediate_size),
  };
}

}  // namespace

StoredExperts take_experts(
    Checkpoint& checkpoint, const std::string& module, const ExpertsShape& shape
) {
  if (checkpoint.has(module + ".gate_up_proj")) {
    return take_fused(checkpoint, module, shape);
  }
  if (checkpoint.has(module + ".0.gate_proj.weight")) {
    return take_single(checkpoint, module, shape);
  }
  return take_stacked(checkpoint, module, shape);
}

}  // namespace whimbrel
