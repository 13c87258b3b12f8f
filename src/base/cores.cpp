#include "base/cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#if defined(__linux__)
#include <sched.h>
#endif

namespace whimbrel {

namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// "100000 100000"; "max 100000" is no limit. Anything else counts as none, too.
int cpus_of_quota(const std::string& quota, const std::string& period) {
  try {
    const double cpus = std::stod(quota) / std::stod(period);
    return cpus > 0 ? static_cast<int>(std::ceil(cpus)) : 0;
  } catch (const std::exception&) {
    return 0;
  }
}

#if defined(__linux__)
std::set<int> allowed_cpus() {
  std::set<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) {
        cpus.insert(cpu);
      }
    }
  }
  return cpus;
}
#endif

}  // namespace

int physical_cores(const std::set<int>& cpus, const std::filesystem::path& root) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    const std::filesystem::path topology = root / fmt::format("cpu{}", cpu) / "topology";
    const std::string siblings = first_line(topology / "thread_siblings_list");
    cores.insert(siblings.empty() ? fmt::format("cpu {}", cpu) : siblings);
  }
  return static_cast<int>(cores.size());
}

int cgroup_cpus(const std::filesystem::path& root) {
  const std::string version2 = first_line(root / "cpu.max");
  if (!version2.empty()) {
    const size_t space = std::min(version2.find(' '), version2.size() - 1);
    return cpus_of_quota(version2.substr(0, space), version2.substr(space + 1));
  }
  return cpus_of_quota(
      first_line(root / "cpu" / "cpu.cfs_quota_us"), first_line(root / "cpu" / "cpu.cfs_period_us")
  );
}

int usable_cores() {
#if defined(__linux__)
  const int cores = physical_cores(allowed_cpus(), "/sys/devices/system/cpu");
  const int quota = cgroup_cpus("/sys/fs/cgroup");
  return std::max(1, quota > 0 ? std::min(cores, quota) : cores);
#else
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#endif
}

}  // namespace whimbrel
