#pragma once

#include <mlx/array.h>

namespace whimbrel::ablations {

/// Writes rows [1, heads, count, width] into the buffer [1, heads, capacity, width] from row
/// `first` on, in place: the result is the buffer itself, and the one passed in is spent. So that a
/// defect adds its own cost and not a second one. CPU only.
mlx::core::array append_rows(
    const mlx::core::array& buffer, const mlx::core::array& rows, int first
);

}  // namespace whimbrel::ablations
