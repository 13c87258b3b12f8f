#pragma once

#include <fmt/format.h>
#include <mlx/array.h>

#include <stdexcept>

namespace whimbrel::nn {

/// Debug builds check at each layer that the residual stream has kept its dtype: one value that
/// leaks out as float32 would slow down every later layer.
inline void assert_residual_dtype(
    [[maybe_unused]] const mlx::core::array& x,
    [[maybe_unused]] mlx::core::Dtype expected,
    [[maybe_unused]] int layer
) {
#ifndef NDEBUG
  if (x.dtype() != expected) {
    throw std::logic_error(
        fmt::format("[layer {}] got a residual of another dtype than the activations", layer)
    );
  }
#endif
}

}  // namespace whimbrel::nn
