#pragma once

#include <mlx/allocator.h>
#include <mlx/backend/cpu/encoder.h>
#include <mlx/mlx.h>
#include <mlx/primitives.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ops/cpu/workspace.h"
#include "ops/graph.h"

namespace whimbrel::ops::cpu {

namespace mx = mlx::core;

/// Raw memory of an operation's inputs and outputs.
struct Memory {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;

  template <typename T>
  const T* in(size_t index) const {
    return static_cast<const T*>(inputs[index]);
  }
  template <typename T>
  T* out(size_t index) const {
    return static_cast<T*>(outputs[index]);
  }
};

/// An input that is changed in place and comes out as an output. Copied first where anyone else
/// still holds it.
struct InPlace {
  size_t input;
  size_t output;
};

/// A row-major copy of an array that lies otherwise, made when the stream gets there.
mx::array row_major(const mx::array& array, mx::Stream stream);

/// A node of MLX's graph that is one of our operations. `Work` is copied into the stream's queue
/// and runs there as work(workspace, memory); it holds what it needs, no arrays of the graph, and
/// knows the bytes of its weights.
template <typename Work>
class Operation : public OwnPrimitive {
 public:
  Operation(std::shared_ptr<Workspace> workspace, Work work, std::vector<InPlace> in_place)
      : OwnPrimitive(mx::default_stream(mx::Device::cpu)),
        workspace_(std::move(workspace)),
        work_(std::move(work)),
        in_place_(std::move(in_place)) {}

  const char* name() const override { return Work::kName; }

  uint64_t weight_bytes() const override { return work_.weight_bytes(); }

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    Memory memory;
    memory.inputs.reserve(inputs.size());
    for (const mx::array& input : inputs) {
      memory.inputs.push_back(row_major(input, stream()).template data<void>());
    }
    release_inputs(inputs, outputs);
    const std::vector<InPlace> copies = place_outputs(inputs, outputs);
    for (mx::array& output : outputs) {
      memory.outputs.push_back(output.data<void>());
    }
    std::vector<size_t> sizes;
    for (const InPlace& copy : copies) {
      sizes.push_back(outputs[copy.output].nbytes());
    }
    const size_t waiting = outputs[0].nbytes();
    workspace_->backlog.add(waiting);
    mx::cpu::get_command_encoder(stream()).dispatch(
        [workspace = workspace_, work = work_, memory = std::move(memory), copies, sizes, waiting] {
          for (size_t i = 0; i < copies.size(); ++i) {
            std::memcpy(memory.outputs[copies[i].output], memory.inputs[copies[i].input], sizes[i]);
          }
          const std::lock_guard lock(workspace->running);
          work(*workspace, memory);
          workspace->backlog.remove(waiting);
        }
    );
  }

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::logic_error("[Operation] got a GPU's stream, expected the CPU's");
  }

 private:
  /// Each output of a node holds the node's inputs, so that none could be written in place. Now
  /// that the node runs, those of the output that MLX runs it by are enough.
  static void release_inputs(
      const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs
  ) {
    const auto is_run = [&inputs](mx::array& output) { return &output.inputs() == &inputs; };
    if (std::ranges::none_of(outputs, is_run)) {
      return;
    }
    for (mx::array& output : outputs) {
      if (!is_run(output)) {
        output.inputs().clear();
      }
    }
  }

  /// Gives outputs their memory; returns those that are copies of inputs.
  std::vector<InPlace> place_outputs(
      const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs
  ) const {
    std::vector<InPlace> copies;
    for (const InPlace& pair : in_place_) {
      const mx::array& input = inputs[pair.input];
      if (input.is_donatable() && input.flags().row_contiguous) {
        outputs[pair.output].copy_shared_buffer(input);
      } else {
        copies.push_back(pair);
      }
    }
    for (mx::array& output : outputs) {
      if (output.data_shared_ptr() == nullptr) {
        output.set_data(mx::allocator::malloc(output.nbytes()));
      }
    }
    return copies;
  }

  std::shared_ptr<Workspace> workspace_;
  Work work_;
  std::vector<InPlace> in_place_;
};

}  // namespace whimbrel::ops::cpu
