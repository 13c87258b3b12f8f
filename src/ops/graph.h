#pragma once

#include <mlx/array.h>
#include <mlx/primitives.h>

#include <cstdint>
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

/// An operation that is one of this project's own kernels, not one of MLX. Its weights are no
/// inputs in the graph.
class OwnPrimitive : public mlx::core::Primitive {
 public:
  using Primitive::Primitive;

  /// Bytes of weights that it reads.
  virtual uint64_t weight_bytes() const = 0;
};

/// The operation as one of our own, or none.
const OwnPrimitive* as_own(const mlx::core::Primitive& primitive);

/// Whether MLX's operation of this name only looks at its input's buffer in another way, as long as
/// that lies in one piece.
bool is_view(std::string_view name);

}  // namespace whimbrel::ops
