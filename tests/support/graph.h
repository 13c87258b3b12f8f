#pragma once

#include <mlx/array.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace whimbrel::test {

/// Calls `visit` once for each node that the arrays are computed from, themselves included.
void walk_graph(
    const std::vector<mlx::core::array>& roots,
    const std::function<void(const mlx::core::array&)>& visit
);

/// Names of the operations of the graph, each as often as it stands there.
std::multiset<std::string> operations(const std::vector<mlx::core::array>& roots);

}  // namespace whimbrel::test
