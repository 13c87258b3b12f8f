#include "base/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

namespace whimbrel {

namespace {

std::optional<uint64_t> read_number(const char* path) {
  std::ifstream in(path);
  uint64_t value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

/// A figure of a file such as /proc/meminfo, by its key ("MemAvailable:"); kibibytes there.
std::optional<uint64_t> figure_of(const char* path, std::string_view key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(key)) {
      return std::stoull(line.substr(line.find(':') + 1)) * 1024;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> system_memory(std::string_view key) {
  return figure_of("/proc/meminfo", key);
}

/// The memory controller's limit on this container, cgroup version 2; nothing where it has none.
std::optional<uint64_t> cgroup_limit() {
  return read_number("/sys/fs/cgroup/memory.max");
}

/// What the memory controller of cgroup version 2 leaves to this container.
std::optional<uint64_t> cgroup_available() {
  const std::optional<uint64_t> limit = cgroup_limit();
  const std::optional<uint64_t> used = read_number("/sys/fs/cgroup/memory.current");
  if (!limit || !used) {
    return std::nullopt;
  }
  return *limit > *used ? *limit - *used : 0;
}

std::optional<uint64_t> smaller(std::optional<uint64_t> a, std::optional<uint64_t> b) {
  return a && b ? std::min(*a, *b) : (a ? a : b);
}

}  // namespace

std::optional<uint64_t> available_memory() {
  return smaller(system_memory("MemAvailable:"), cgroup_available());
}

std::optional<uint64_t> total_memory() {
  return smaller(system_memory("MemTotal:"), cgroup_limit());
}

std::optional<uint64_t> peak_memory() {
  if (const std::optional<uint64_t> peak = figure_of("/proc/self/status", "VmHWM:")) {
    return peak;
  }
#if defined(__APPLE__)
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    return static_cast<uint64_t>(usage.ru_maxrss);  // bytes there
  }
#endif
  return std::nullopt;
}

void reset_peak_memory() {
  std::ofstream("/proc/self/clear_refs") << "5\n";
}

}  // namespace whimbrel
