#include "generate/stop_text.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace whimbrel {

namespace {

/// Length of the longest end of `text` that `stop` begins with.
size_t partial_match(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size()); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) {
      return length;
    }
  }
  return 0;
}

}  // namespace

StopText::StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {
  if (std::ranges::any_of(stops_, [](const std::string& stop) { return stop.empty(); })) {
    throw Error(Fault::usage, "stop", "got an empty stop text, expected at least one character");
  }
}

std::string StopText::push(std::string_view piece) {
  if (stopped_) {
    return "";
  }
  held_ += piece;
  size_t first = std::string::npos;
  size_t partial = 0;
  for (const std::string& stop : stops_) {
    first = std::min(first, held_.find(stop));
    partial = std::max(partial, partial_match(held_, stop));
  }
  if (first != std::string::npos) {
    stopped_ = true;
    held_.resize(first);
    return std::exchange(held_, "");
  }
  std::string safe = held_.substr(0, held_.size() - partial);
  held_.erase(0, safe.size());
  return safe;
}

std::string StopText::finish() {
  return stopped_ ? "" : std::exchange(held_, "");
}

}  // namespace whimbrel
