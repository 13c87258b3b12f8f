#pragma once

#include <mlx/array.h>
#include <mlx/primitives.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace whimbrel::ops {

/// Calls `visit` once for each node that the arrays are computed from, themselves included.
void walk_graph(
    const std::vector<mlx::core::array>& roots,
    const std::function<void(const mlx::core::array&)>& visit
);

/// Names of the operations of the graph, each as often as it stands there.
std::multiset<std::string> operations(const std::vector<mlx::core::array>& roots);

/// Whether an operation is one of this project's own kernels, not one of MLX.
bool is_own(const mlx::core::Primitive& primitive);

/// Whether MLX's operation of this name only looks at its input's buffer in another way, as long as
/// that lies in one piece.
bool is_view(std::string_view name);

}  // namespace whimbrel::ops
