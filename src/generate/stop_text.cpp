#include "generate/stop_text.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace whimbrel {

StopText::StopText(const std::vector<std::string>& stops) {
  for (const std::string& stop : stops) {
    if (stop.empty()) {
      throw Error(Fault::usage, "stop", "got an empty stop text, expected at least one character");
    }
    add(stop);
  }
  link();
}

void StopText::add(std::string_view stop) {
  uint32_t node = 0;
  for (const char c : stop) {
    uint32_t next = child(node, c);
    if (next == 0) {
      next = static_cast<uint32_t>(nodes_.size());
      nodes_[node].next.emplace_back(c, next);
      nodes_.push_back({.depth = nodes_[node].depth + 1});
    }
    node = next;
  }
  nodes_[node].stop = nodes_[node].depth;
}

/// Shorter nodes first, for a node's fallback is found from that of the node before it.
void StopText::link() {
  std::vector<uint32_t> order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t node = order[i];
    for (const auto& [c, next] : nodes_[node].next) {
      Node& longer = nodes_[next];
      longer.fallback = node == 0 ? 0 : step(nodes_[node].fallback, c);
      longer.stop = std::max(longer.stop, nodes_[longer.fallback].stop);
      order.push_back(next);
    }
  }
}

/// 0 where there is none.
uint32_t StopText::child(uint32_t node, char c) const {
  const auto& next = nodes_[node].next;
  const auto found = std::ranges::find(next, c, &std::pair<char, uint32_t>::first);
  return found == next.end() ? 0 : found->second;
}

uint32_t StopText::step(uint32_t node, char c) const {
  uint32_t next = child(node, c);
  while (next == 0 && node != 0) {
    node = nodes_[node].fallback;
    next = child(node, c);
  }
  return next;
}

std::string StopText::push(std::string_view piece) {
  if (stopped_) {
    return "";
  }
  std::string text = std::exchange(held_, {});
  for (const char c : piece) {
    text += c;
    node_ = step(node_, c);
    if (nodes_[node_].stop > 0) {
      stopped_ = true;
      matched_ = text.substr(text.size() - nodes_[node_].stop);
      text.resize(text.size() - nodes_[node_].stop);
      return text;
    }
  }
  held_ = text.substr(text.size() - nodes_[node_].depth);
  text.resize(text.size() - held_.size());
  return text;
}

std::string StopText::finish() {
  return stopped_ ? "" : std::exchange(held_, {});
}

}  // namespace whimbrel
