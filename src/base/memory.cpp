#include "base/memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace whimbrel {

namespace {

std::optional<uint64_t> read_number(const char* path) {
  std::ifstream in(path);
  uint64_t value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

/// MemAvailable of /proc/meminfo, which is in kibibytes.
std::optional<uint64_t> system_available() {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("MemAvailable:")) {
      return std::stoull(line.substr(line.find(':') + 1)) * 1024;
    }
  }
  return std::nullopt;
}

/// What the memory controller of cgroup version 2 leaves to this container.
std::optional<uint64_t> cgroup_available() {
  const std::optional<uint64_t> limit = read_number("/sys/fs/cgroup/memory.max");
  const std::optional<uint64_t> used = read_number("/sys/fs/cgroup/memory.current");
  if (!limit || !used) {
    return std::nullopt;
  }
  return *limit > *used ? *limit - *used : 0;
}

}  // namespace

std::optional<uint64_t> available_memory() {
  const std::optional<uint64_t> system = system_available();
  const std::optional<uint64_t> cgroup = cgroup_available();
  if (system && cgroup) {
    return std::min(*system, *cgroup);
  }
  return system ? system : cgroup;
}

}  // namespace whimbrel
