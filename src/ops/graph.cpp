#include "ops/graph.h"

#include <algorithm>
#include <array>

namespace whimbrel::ops {

namespace mx = mlx::core;

namespace {

constexpr std::array<std::string_view, 11> kViews = {
    "AsStrided",
    "Broadcast",
    "BroadcastAxes",
    "ExpandDims",
    "Flatten",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "Transpose",
    "Unflatten",
};

}  // namespace

void walk_graph(
    const std::vector<mx::array>& roots, const std::function<void(const mx::array&)>& visit
) {
  std::set<std::uintptr_t> seen;
  std::vector<mx::array> open = roots;
  while (!open.empty()) {
    const mx::array node = open.back();
    open.pop_back();
    if (!seen.insert(node.id()).second) {
      continue;
    }
    visit(node);
    if (node.has_primitive()) {
      open.insert(open.end(), node.inputs().begin(), node.inputs().end());
    }
  }
}

std::multiset<std::string> operations(const std::vector<mx::array>& roots) {
  std::multiset<std::string> names;
  walk_graph(roots, [&names](const mx::array& node) {
    if (node.has_primitive()) {
      names.insert(node.primitive().name());
    }
  });
  return names;
}

const OwnPrimitive* as_own(const mx::Primitive& primitive) {
  return dynamic_cast<const OwnPrimitive*>(&primitive);
}

bool is_view(std::string_view name) {
  return std::ranges::count(kViews, name) != 0;
}

}  // namespace whimbrel::ops
