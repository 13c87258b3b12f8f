#pragma once

#include <fmt/format.h>
#include <mlx/array.h>

#include <functional>
#include <string_view>

namespace whimbrel::nn {

/// Hears what each stage of a model puts out, by the canonical path of its module
/// (`visual.blocks.3`, `model.layers.0`), and may evaluate it; of a tower's long attention also the
/// rows of each part, as `visual.blocks.3.attn`. Where it is empty it costs nothing.
using StageListener = std::function<void(std::string_view stage, const mlx::core::array& output)>;

/// Gives the rows that go on behind a decoder layer in place of its own: what each layer does by
/// itself is seen only where all take the rows of another run. Empty in ordinary use.
using LayerForcing = std::function<mlx::core::array(int layer)>;

/// Tells a listener, where there is one.
class StageReporter {
 public:
  explicit StageReporter(const StageListener& listener) : listener_(listener) {}

  bool is_heard() const { return static_cast<bool>(listener_); }

  void operator()(std::string_view stage, const mlx::core::array& output) const {
    if (listener_) {
      listener_(stage, output);
    }
  }

  /// `pattern` has a place for the index of the block or layer.
  void operator()(
      fmt::format_string<int&> pattern, int index, const mlx::core::array& output
  ) const {
    if (listener_) {
      listener_(fmt::format(pattern, index), output);
    }
  }

  /// Tells of the parts of a stage; empty where nobody hears it.
  std::function<void(const mlx::core::array& part)> parts_of(
      fmt::format_string<int&> pattern, int index
  ) const {
    if (!listener_) {
      return nullptr;
    }
    return [this, name = fmt::format(pattern, index)](const mlx::core::array& part) {
      listener_(name, part);
    };
  }

 private:
  const StageListener& listener_;
};

}  // namespace whimbrel::nn
