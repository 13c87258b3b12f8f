#pragma once

#include <filesystem>
#include <set>

namespace whimbrel {

/// Threads that kernels should run on: physical cores that this process may use by its affinity, at
/// most the quota of its control group; at least 1.
int usable_cores();

/// Physical cores among CPUs, by the topology files below `root` (/sys/devices/system/cpu); a CPU
/// without such files counts as a core.
int physical_cores(const std::set<int>& cpus, const std::filesystem::path& root);

/// CPUs' worth of time that the control group below `root` (/sys/fs/cgroup, version 2 or 1) grants,
/// rounded up; 0 where there is no limit.
int cgroup_cpus(const std::filesystem::path& root);

}  // namespace whimbrel
